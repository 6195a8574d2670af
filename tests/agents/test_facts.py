from agents.hostagent import facts_linux, facts_macos
from agents.hostagent.facts import STATIC, fingerprint

APPLE_SYSCTL = """\
machdep.cpu.brand_string: Apple M2
hw.physicalcpu: 8
hw.memsize: 17179869184
"""
INTEL_SYSCTL = """\
machdep.cpu.brand_string: Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz
hw.physicalcpu: 6
hw.memsize: 17179869184
hw.cpufrequency_min: 800000000
hw.cpufrequency_max: 2600000000
"""
SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.5\nBuildVersion:\t\t23F79\n"
CPUINFO = """\
processor\t: 0
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
physical id\t: 0
core id\t\t: 0

processor\t: 1
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
physical id\t: 0
core id\t\t: 1

processor\t: 2
model name\t: Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz
physical id\t: 0
core id\t\t: 0
"""


def test_it_reads_apple_silicon_which_tells_no_clocks() -> None:
    facts = facts_macos.from_output(APPLE_SYSCTL, SW_VERS)
    assert (facts["cpu_model"], facts["cores"]) == ("Apple M2", 8)
    assert facts["memory_bytes"] == 16 * 2**30
    assert (facts["os_name"], facts["os_version"]) == ("macOS", "14.5")
    assert facts["clock_max_mhz"] is None


def test_it_reads_an_intel_mac() -> None:
    facts = facts_macos.from_output(INTEL_SYSCTL, SW_VERS)
    assert (facts["clock_min_mhz"], facts["clock_max_mhz"]) == (800, 2600)


def test_it_knows_nothing_where_macos_says_nothing() -> None:
    assert set(facts_macos.from_output("", "").values()) == {None}


def test_it_counts_cores_and_not_threads() -> None:
    assert facts_linux.cores(CPUINFO) == 2
    assert facts_linux.cpu_model(CPUINFO) == "Intel(R) Core(TM) i5-8365U CPU @ 1.60GHz"
    assert facts_linux.cores("processor\t: 0\nBogoMIPS\t: 48.00\n") is None


def test_it_reads_memory_and_release() -> None:
    assert facts_linux.memory_bytes("MemTotal:        2048 kB\nMemFree: 1 kB\n") == 2 * 2**20
    release = facts_linux.os_release('NAME="Debian GNU/Linux"\nVERSION_ID="12"\n')
    assert release == {"NAME": "Debian GNU/Linux", "VERSION_ID": "12"}


def test_it_fingerprints_static_facts_only() -> None:
    facts = dict.fromkeys(STATIC, "x")
    assert fingerprint({**facts, "load": [1, 2, 3]}) == fingerprint(facts)
    for name in STATIC:
        assert fingerprint({**facts, name: "y"}) != fingerprint(facts)
