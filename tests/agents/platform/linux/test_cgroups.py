"""cgroup v2, on trees with the kernel's file formats; `make vm-test` tests it on a real kernel."""

import os
from pathlib import Path

from agents.hostagent.platform.limits import Confinement, Limits
from agents.hostagent.platform.linux import cgroups, systemd_scope
from agents.hostagent.platform.linux.cgroup_hierarchies import find_hierarchy

GROUPS = "sys/fs/cgroup"
SESSION = "user.slice/user-0.slice/session-4.scope"
CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc\n"


def a_system(root: Path, own: str = SESSION, mounts: str = "") -> Path:
    """A machine of today: only v2, our group `own` with us and a shell in it."""
    (root / "proc/self").mkdir(parents=True)
    both = f"cgroup2 /{GROUPS} cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n"
    (root / "proc/self/mounts").write_text(f"proc /proc proc rw 0 0\n{mounts or both}")
    (root / "proc/self/cgroup").write_text(f"0::/{own}\n")
    folder = root / GROUPS
    a_group(folder, procs="1\n2\n", root=True)
    for part in filter(None, own.split("/")):
        folder = folder / part
        a_group(folder)
    (folder / "cgroup.procs").write_text(f"977\n{os.getpid()}\n")
    return root


def a_group(folder: Path, procs: str = "", root: bool = False) -> None:
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(procs)
    (folder / "cgroup.controllers").write_text(CONTROLLERS)
    (folder / "cgroup.subtree_control").write_text("memory pids\n")
    if not root:
        (folder / "cgroup.type").write_text("domain\n")


def test_cgroup_search_uses_the_nearest_group_that_holds_no_processes(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    assert hierarchy.mechanism == "cgroup2"
    slice_ = tmp_path / GROUPS / "user.slice/user-0.slice"
    assert hierarchy.folders == dict.fromkeys(("cpuset", "cpu", "memory", "io", "pids"), slice_)


def test_cgroup_search_uses_the_root_where_we_are_in_it(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path, own=""))
    assert hierarchy is not None
    assert set(hierarchy.folders.values()) == {tmp_path / GROUPS}


def test_cgroup_search_uses_a_delegated_group_in_which_it_is_alone(tmp_path: Path) -> None:
    own = a_system(tmp_path) / GROUPS / SESSION
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    hierarchy = find_hierarchy(tmp_path)
    assert hierarchy is not None
    assert hierarchy.folders["cpu"] == own
    room = own / f"{cgroups.PREFIX}-{cgroups.read_namespace()}-{os.getpid()}-0"
    cgroups.Group(hierarchy, ["cpu"])
    # Only a group without processes can have controllers in the groups below it.
    assert (room / "cgroup.procs").read_text() == "0"


def test_cgroup_search_accepts_the_delegated_controllers(tmp_path: Path) -> None:
    slice_ = a_system(tmp_path) / GROUPS / "user.slice/user-0.slice"
    (slice_ / "cgroup.controllers").write_text("cpu memory pids\n")
    hierarchy = find_hierarchy(tmp_path)
    assert hierarchy is not None
    assert hierarchy.folders == {"cpu": slice_, "memory": slice_, "pids": slice_}


def test_cgroup_search_skips_groups_without_controllers(tmp_path: Path) -> None:
    slice_ = a_system(tmp_path) / GROUPS / "user.slice/user-0.slice"
    (slice_ / "cgroup.controllers").write_text("pids\n")
    hierarchy = find_hierarchy(tmp_path)
    assert hierarchy is not None
    assert hierarchy.folders["cpu"] == slice_.parent


def test_limits_are_written_in_the_format_of_the_kernel(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    group = cgroups.Group(hierarchy, ["cpuset", "cpu", "memory", "pids"])
    group.set_cpus([0, 2])
    group.set_quota(1.5)
    group.set_memory(1 << 26)
    group.set_processes(500)
    assert group.enter() == {}
    (leaf,) = hierarchy.folders["cpu"].glob("pitwall-*")
    assert {path.name: path.read_text() for path in leaf.iterdir()} == {
        "cpuset.cpus": "0,2",
        "cpu.max": "150000 100000",
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "pids.max": "500",
        "cgroup.procs": "0",
    }
    assert (group.quota(), group.memory(), group.processes()) == (1.5, 1 << 26, 500)


def test_only_disabled_controllers_are_enabled(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    control = hierarchy.folders["memory"] / "cgroup.subtree_control"
    cgroups.Group(hierarchy, ["memory"])
    assert control.read_text() == "memory pids\n"
    cgroups.Group(hierarchy, ["cpu"])
    assert control.read_text() == "+cpu"


def test_counters_of_the_kernel_are_read(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    group = cgroups.Group(hierarchy, ["cpu", "memory", "pids"])
    (leaf,) = hierarchy.folders["cpu"].glob("pitwall-*")
    (leaf / "cpu.max").write_text("max 100000\n")
    (leaf / "pids.max").write_text("max\n")
    (leaf / "pids.events").write_text("max 7\n")
    (leaf / "memory.max").write_text("max\n")
    (leaf / "cpu.stat").write_text(
        "usage_usec 529871\nuser_usec 480012\nsystem_usec 49859\n"
        "nr_periods 11\nnr_throttled 9\nthrottled_usec 441220\n"
    )
    (leaf / "memory.events").write_text(
        "low 0\nhigh 0\nmax 212\noom 3\noom_kill 2\noom_group_kill 0\n"
    )
    (leaf / "cgroup.procs").write_text(f"{os.getpid()}\n0\n4242\n")
    assert (group.quota(), group.memory(), group.processes()) == (None, None, None)
    assert (group.throttled(), group.oom_kills(), group.refused_forks()) == (9, 2, 7)
    # Neither we nor what another pid namespace hides is ours to kill.
    assert group.members() == {4242}


def test_each_child_gets_one_group(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    first, second = cgroups.Group(hierarchy, ["cpu"]), cgroups.Group(hierarchy, ["cpu"])
    assert len(list(hierarchy.folders["cpu"].glob("pitwall-*"))) == 2
    first.remove()
    second.remove()
    assert list(hierarchy.folders["cpu"].glob("pitwall-*")) == []


def test_cgroup_search_uses_v1_where_v2_has_no_controllers(tmp_path: Path) -> None:
    mounts = "".join(
        f"cgroup /{GROUPS}/{name} cgroup rw,relatime,{name} 0 0\n"
        for name in ("cpu,cpuacct", "cpuset", "memory")
    )
    hybrid = f"cgroup2 /{GROUPS}/unified cgroup2 rw,relatime 0 0\n"
    root = a_system(tmp_path, own="unified", mounts=mounts + hybrid)
    (root / GROUPS / "unified/cgroup.controllers").write_text("hugetlb\n")
    for name in ("cpu,cpuacct/jobs", "cpuset", "memory"):
        (root / GROUPS / name).mkdir(parents=True)
    own = "3:cpuset:/\n2:cpu,cpuacct:/jobs\n1:memory:/gone/from/here\n0::/\n"
    (root / "proc/self/cgroup").write_text(own)
    hierarchy = find_hierarchy(root)
    assert hierarchy is not None
    assert hierarchy.version == 1
    groups = root / GROUPS
    # A path that is not to be found belongs to a container: its own group is the top there.
    assert hierarchy.folders == {
        "cpu": groups / "cpu,cpuacct/jobs",
        "cpuset": groups / "cpuset",
        "memory": groups / "memory",
    }


def test_cgroup_search_finds_nothing_where_nothing_is_mounted(tmp_path: Path) -> None:
    assert find_hierarchy(a_system(tmp_path, mounts="proc /proc proc rw 0 0\n")) is None
    assert find_hierarchy(tmp_path / "nothing") is None


SCOPE = "user.slice/user-1000.slice/user@1000.service/pitwall.slice/pitwall-977.scope"


def under_systemd(root: Path, own: str) -> Path:
    system = a_system(root, own=own)
    (system / "run/systemd/system").mkdir(parents=True)
    return system


def test_groups_of_systemd_are_left_alone(tmp_path: Path) -> None:
    """systemd takes controllers and limits away from groups that it has not delegated."""
    own = under_systemd(tmp_path, SESSION) / GROUPS / SESSION
    assert find_hierarchy(tmp_path) is None
    # Also where the agent is alone in its session.
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find_hierarchy(tmp_path) is None


def test_groups_are_created_in_the_scope_of_the_supervisor(tmp_path: Path) -> None:
    scope = under_systemd(tmp_path, SCOPE) / GROUPS / SCOPE
    (scope / "cgroup.procs").write_text(f"{os.getpid()}\n")
    hierarchy = find_hierarchy(tmp_path)
    assert hierarchy is not None
    assert set(hierarchy.folders.values()) == {scope}
    cgroups.Group(hierarchy, ["cpu"])
    # The supervisor is in a subgroup from now on. Later groups are next to that, not below it.
    subgroup = f"pitwall-{cgroups.read_namespace()}-{os.getpid()}-0"
    (tmp_path / "proc/self/cgroup").write_text(f"0::/{SCOPE}/{subgroup}\n")
    (scope / "cgroup.procs").write_text("")
    (scope / subgroup / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find_hierarchy(tmp_path) == hierarchy


def test_systemd_is_asked_to_delegate_a_scope() -> None:
    user, root = (systemd_scope._build_call(977, is_root=is_root) for is_root in (False, True))
    assert (user[1], root[1]) == ("--user", "--system")
    words = " ".join(user)
    for part in ("pitwall-977.scope fail 4", "PIDs au 1 977", "Delegate b true"):
        assert part in words


def test_limits_that_change_during_the_load_are_reported(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    wanted = Limits(cpus=(0, 1), cpu_quota=1.5, memory_bytes=1 << 26)
    applied: dict[str, object] = {}
    confinement = Confinement(wanted, hierarchy)
    (leaf,) = hierarchy.folders["cpu"].glob("pitwall-*")
    (leaf / "cpuset.cpus.effective").write_text("0-1\n")
    (leaf / "memory.max").write_text("max\n")
    (leaf / "cpu.max").unlink()
    confinement.read_back(os.getppid())
    (leaf / "memory.max").write_text(str(1 << 26))
    confinement.close(applied)
    assert applied["changed"] == {
        "cpu_quota": "it was 1.5 before the load and None after it",
        "memory_bytes": "it was 67108864 before the load and None after it",
        "group": "the process left its control group",
    }


def test_a_child_without_limits_has_a_group_in_cgroup_v2(tmp_path: Path) -> None:
    hierarchy = find_hierarchy(a_system(tmp_path))
    assert hierarchy is not None
    applied: dict[str, object] = {}
    confinement = Confinement(Limits(), hierarchy)
    (leaf,) = hierarchy.folders["cpu"].glob("pitwall-*")
    assert {path.name for path in leaf.iterdir()} == {"pids.max"}
    (leaf / "memory.peak").write_text("1234\n")
    (leaf / "memory.events").write_text("oom 1\noom_kill 1\n")
    confinement.close(applied)
    assert applied == {"oom_kills": 1, "peak_memory_bytes": 1234, "changed": {}}
