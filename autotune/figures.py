"""Figures as people read them: three significant digits and a unit."""

import math

_TIMES = ((1e-3, 1e6, "ns"), (1.0, 1e3, "µs"), (1e3, 1.0, "ms"), (math.inf, 1e-3, "s"))
_ENERGIES = ((1e-3, 1e6, "µJ"), (1.0, 1e3, "mJ"), (1e3, 1.0, "J"), (math.inf, 1e-3, "kJ"))
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def format_plain(value: float) -> str:
    """Three significant digits, never an exponent: 0.0123, 1.23, 12.3, 123, 1230."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"


def _format_in_best_unit(value: float, units: tuple[tuple[float, float, str], ...]) -> str:
    if not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.3g}")  # 0.9999 ms is 1.00 ms, not 1000 µs
    factor, unit = next((factor, unit) for below, factor, unit in units if abs(rounded) < below)
    return f"{format_plain(rounded * factor)} {unit}"


def duration(ms: float) -> str:
    """A time given in milliseconds, in the unit that reads best."""
    return _format_in_best_unit(ms, _TIMES)


def energy(joules: float) -> str:
    """An energy given in joules, in the unit that reads best."""
    return _format_in_best_unit(joules, _ENERGIES)


def power(watts: float) -> str:
    """In watts."""
    return f"{format_plain(watts)} W" if math.isfinite(watts) else "–"


def seconds(value: float) -> str:
    """A duration given in seconds, in the unit that reads best."""
    return duration(1000 * value) if value else "0 s"


def percent(value: float) -> str:
    """A signed change given in percent."""
    if not math.isfinite(value):
        return "–"
    digits = 0 if value >= 99.5 else 1
    return f"{value:+,.{digits}f} %".replace("-", "−").replace("+0.0 %", "0.0 %").replace("−0.0 %", "0.0 %")


def points(value: float) -> str:
    """A signed difference of two percentages, in percentage points."""
    return percent(value).replace(" %", " pp")


def number(value: float) -> str:
    """Any figure: three significant digits, thousands set apart when it is large."""
    return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 1000 else format_plain(value)


def error(value: float) -> str:
    """How far something is off: two significant digits, 3.2e-04."""
    return f"{value:.1e}" if value else "0"


def correlation(value: float) -> str:
    """A number between -1 and 1: 0.81."""
    return f"{value:.2f}".replace("-", "−").replace("−0.00", "0.00") if math.isfinite(value) else "–"


def size(value: float) -> str:
    """A number of bytes, with powers of 1024: 2.16 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            return f"{value:.0f} B" if unit == "B" else f"{format_plain(value)} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def spread(value: float) -> str:
    """A relative half-width (0.004) as ±0.4 %; exactly 1 is what measure says of a single sample."""
    if value == 1.0:
        return "one sample"
    return f"±{100 * value:.1f} %" if math.isfinite(value) else "–"


def share(value: float) -> str:
    """A share of one (0.5) as 50 %; what is not quite none or all does not read as such."""
    if 0.995 <= value < 1:
        return ">99 %"
    if 0 < value < 0.005:
        return "<1 %"
    return f"{100 * value:.0f} %" if math.isfinite(value) else "–"


def ratio(value: float) -> str:
    """How many times: 12.3×."""
    return f"{format_plain(value)}×" if math.isfinite(value) else "–"


def count(value: float) -> str:
    """A whole number, thousands set apart."""
    return f"{value:,.0f}" if math.isfinite(value) else "–"


def si(value: float) -> str:
    """With an SI prefix: 53.1 T. The unit follows without a space."""
    if not math.isfinite(value):
        return "–"
    thousands = math.floor(math.log10(float(f"{abs(value):.3g}")) / 3) if value else 0
    power = min(len(_PREFIXES) - 1, max(0, thousands))
    return f"{format_plain(value / 1000**power)} {_PREFIXES[power]}"


def loss_percent(value: float) -> str:
    """A regret for people: ``3.2 %``, and a factor from 10 times on."""
    return f"{value + 1:.3g} x" if value >= 9 else f"{100 * value:.1f} %"
