"""Structures of Windows as its headers have them, in the sizes of 64-bit Windows on any system."""

from __future__ import annotations

import ctypes

_BYTE, _DWORD, _LONG = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_int32
_SIZE, _I64, _U64 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64
_MAX_PIDS = 4096


class BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION"""

    _fields_ = [
        ("PerProcessUserTimeLimit", _I64),
        ("PerJobUserTimeLimit", _I64),
        ("LimitFlags", _DWORD),
        ("MinimumWorkingSetSize", _SIZE),
        ("MaximumWorkingSetSize", _SIZE),
        ("ActiveProcessLimit", _DWORD),
        ("Affinity", _SIZE),
        ("PriorityClass", _DWORD),
        ("SchedulingClass", _DWORD),
    ]


class IoCounters(ctypes.Structure):
    """IO_COUNTERS"""

    _fields_ = [
        ("ReadOperationCount", _U64),
        ("WriteOperationCount", _U64),
        ("OtherOperationCount", _U64),
        ("ReadTransferCount", _U64),
        ("WriteTransferCount", _U64),
        ("OtherTransferCount", _U64),
    ]


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION"""

    _fields_ = [
        ("BasicLimitInformation", BasicLimits),
        ("IoInfo", IoCounters),
        ("ProcessMemoryLimit", _SIZE),
        ("JobMemoryLimit", _SIZE),
        ("PeakProcessMemoryUsed", _SIZE),
        ("PeakJobMemoryUsed", _SIZE),
    ]


class BasicAccounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION"""

    _fields_ = [
        ("TotalUserTime", _I64),
        ("TotalKernelTime", _I64),
        ("ThisPeriodTotalUserTime", _I64),
        ("ThisPeriodTotalKernelTime", _I64),
        ("TotalPageFaultCount", _DWORD),
        ("TotalProcesses", _DWORD),
        ("ActiveProcesses", _DWORD),
        ("TotalTerminatedProcesses", _DWORD),
    ]


class Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_AND_IO_ACCOUNTING_INFORMATION"""

    _fields_ = [("BasicInfo", BasicAccounting), ("IoInfo", IoCounters)]


class RateControl(ctypes.Structure):
    """JOBOBJECT_CPU_RATE_CONTROL_INFORMATION"""

    _fields_ = [("ControlFlags", _DWORD), ("CpuRate", _DWORD)]


class PidList(ctypes.Structure):
    """JOBOBJECT_BASIC_PROCESS_ID_LIST"""

    _fields_ = [
        ("NumberOfAssignedProcesses", _DWORD),
        ("NumberOfProcessIdsInList", _DWORD),
        ("ProcessIdList", _SIZE * _MAX_PIDS),
    ]


class ProcessEntry(ctypes.Structure):
    """PROCESSENTRY32W"""

    _fields_ = [
        ("dwSize", _DWORD),
        ("cntUsage", _DWORD),
        ("th32ProcessID", _DWORD),
        ("th32DefaultHeapID", _SIZE),
        ("th32ModuleID", _DWORD),
        ("cntThreads", _DWORD),
        ("th32ParentProcessID", _DWORD),
        ("pcPriClassBase", _LONG),
        ("dwFlags", _DWORD),
        ("szExeFile", ctypes.c_uint16 * 260),
    ]


class ThreadEntry(ctypes.Structure):
    """THREADENTRY32"""

    _fields_ = [
        ("dwSize", _DWORD),
        ("cntUsage", _DWORD),
        ("th32ThreadID", _DWORD),
        ("th32OwnerProcessID", _DWORD),
        ("tpBasePri", _LONG),
        ("tpDeltaPri", _LONG),
        ("dwFlags", _DWORD),
    ]


class MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS"""

    _fields_ = [
        ("cb", _DWORD),
        ("PageFaultCount", _DWORD),
        ("PeakWorkingSetSize", _SIZE),
        ("WorkingSetSize", _SIZE),
        ("QuotaPeakPagedPoolUsage", _SIZE),
        ("QuotaPagedPoolUsage", _SIZE),
        ("QuotaPeakNonPagedPoolUsage", _SIZE),
        ("QuotaNonPagedPoolUsage", _SIZE),
        ("PagefileUsage", _SIZE),
        ("PeakPagefileUsage", _SIZE),
    ]


class MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX"""

    _fields_ = [
        ("dwLength", _DWORD),
        ("dwMemoryLoad", _DWORD),
        ("ullTotalPhys", _U64),
        ("ullAvailPhys", _U64),
        ("ullTotalPageFile", _U64),
        ("ullAvailPageFile", _U64),
        ("ullTotalVirtual", _U64),
        ("ullAvailVirtual", _U64),
        ("ullAvailExtendedVirtual", _U64),
    ]


class PowerStatus(ctypes.Structure):
    """SYSTEM_POWER_STATUS"""

    _fields_ = [
        ("ACLineStatus", _BYTE),
        ("BatteryFlag", _BYTE),
        ("BatteryLifePercent", _BYTE),
        ("SystemStatusFlag", _BYTE),
        ("BatteryLifeTime", _DWORD),
        ("BatteryFullLifeTime", _DWORD),
    ]


class CpuPower(ctypes.Structure):
    """PROCESSOR_POWER_INFORMATION"""

    _fields_ = [
        ("Number", _DWORD),
        ("MaxMhz", _DWORD),
        ("CurrentMhz", _DWORD),
        ("MhzLimit", _DWORD),
        ("MaxIdleState", _DWORD),
        ("CurrentIdleState", _DWORD),
    ]


class LogicalProcessor(ctypes.Structure):
    """SYSTEM_LOGICAL_PROCESSOR_INFORMATION"""

    _fields_ = [
        ("ProcessorMask", _SIZE),
        ("Relationship", _DWORD),
        ("Union", _U64 * 2),
    ]
