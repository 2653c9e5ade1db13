"""What can be told of arrays that are images, or may become images by their layout."""

import re
from collections.abc import Iterator

from autotune.cli.lint.findings import Declared, Finding
from autotune.layout import IMAGES

_HEADER = "autotune/image.cuh"


def check_images(declared: Declared) -> Iterator[Finding]:
    """Their accessors' types are in a header of their own."""
    drivers = {name: policy for policy in declared.policies for name in _targets(declared, policy)}
    named = [name for name, value in declared.data.items() if "image" in value or _is_fixed(declared, name)]
    if not named and not drivers:
        return
    includes = rf"^\s*#\s*include\s+[\"<]{re.escape(_HEADER)}[\">]"
    texts = [source.path.read_text(encoding="utf-8", errors="replace") for source in declared.sources]
    if not any(re.search(includes, text, re.MULTILINE) for text in texts):
        place = ("data", named[0]) if named else ("policies", next(iter(drivers.values())))
        yield declared.found(
            "missing-header",
            f"{(*named, *drivers)[0]!r} is an image, and no source includes {_HEADER}, which has its accessor: write "
            f'`#include "{_HEADER}"` in {declared.content["source"]}',
            *place,
        )


def _targets(declared: Declared, policy: str) -> list[str]:
    """The arrays that become images by a value of the policy."""
    value = declared.policies[policy]
    if value.get("layout") != "dims":
        return []
    means = {str(key): meant for key, meant in value.get("means", {}).items()}
    return list(value.get("data", ())) if {means.get(str(v), v) for v in value["values"]} & {*IMAGES} else []


def _is_fixed(declared: Declared, name: str) -> bool:
    return declared.data[name].get("layout", {}).get("dims") in IMAGES
