"""The conda recipe says what pyproject.toml says."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import autotune

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    """With the values of its context put in."""
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    for name, value in yaml.safe_load(text)["context"].items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    made: dict[str, Any] = yaml.safe_load(text)
    return made


def test_its_requirements_are_those_of_the_project(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    system, python, *others = recipe["requirements"]["run"]
    assert system == "__linux" and "Operating System :: POSIX :: Linux" in project["project"]["classifiers"]
    assert python == f"python {project['project']['requires-python']}"
    assert [text.replace(" ", "") for text in others] == project["project"]["dependencies"]
    host = {text.partition(" ")[0]: text for text in recipe["requirements"]["host"]}
    oldest = project["project"]["requires-python"].removeprefix(">=")
    assert host.pop("python") == f"python {oldest}.*"
    assert host.pop("pip") == "pip"
    assert [text.replace(" ", "") for text in host.values()] == project["build-system"]["requires"]


def test_it_is_the_same_package(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    declared = project["project"]
    assert recipe["package"] == {"name": declared["name"], "version": autotune.__version__}
    scripts = [f"{name} = {target}" for name, target in declared["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert recipe["about"]["summary"] == declared["description"]
    assert recipe["about"]["license"] == declared["license"]
    assert recipe["about"]["license_file"] == declared["license-files"]
    assert (ROOT / "conda" / recipe["source"]["path"]).resolve() == ROOT
