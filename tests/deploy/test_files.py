"""The files in deploy/: read, and held to the settings, commands, routes and waiting times that exist.

No Docker daemon, cluster or systemd runs here: images are not built, manifests are not applied.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml  # type: ignore[import-untyped]  # it has no stubs of its own

from windlass.cli.main import main
from windlass.config import Settings, known
from windlass.core.durations import parse_duration
from windlass.core.pool import parse_pools
from windlass.core.scale import LaneScale
from windlass.web.routes import ROUTES

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
KUBERNETES = DEPLOY / "kubernetes"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
OURS = frozenset({"server", "worker", "migrate"})
"""The services of compose.yaml that run Windlass."""


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return read


def manifests() -> list[dict[str, Any]]:
    names = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert {*names, "kustomization.yaml"} == {path.name for path in KUBERNETES.glob("*.yaml")}
    return [each for name in names for each in yaml.safe_load_all((KUBERNETES / name).read_text(encoding="utf-8"))]


def manifest(kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in manifests() if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in manifests():
        if one["kind"] in {"Deployment", "Job"}:
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def check_typed(typed: list[str]) -> None:
    """Refuse a command or option that the command line does not have."""
    context = click.Context(main, info_name="windlass")
    command = main.get_command(context, typed[0])
    assert command is not None, typed
    command.make_context(typed[0], list(typed[1:]), parent=context)


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.*")), ids=lambda path: path.name)
def test_every_setting_that_a_file_names_exists(path: Path) -> None:
    if path.is_dir():
        return
    variables = {one.variable for one in known()}
    named = set(re.findall(r"\bWINDLASS_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8")))
    assert named <= variables, named - variables


def test_every_command_that_a_container_runs_exists() -> None:
    for name in OURS:
        check_typed(compose()["services"][name]["command"])
    for _, pod in pods():
        check_typed(pod["containers"][0]["args"])
    for unit in UNITS:
        [line] = re.findall(r"^ExecStart=\S+/windlass (.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
        check_typed(shlex.split(line))
    [typed] = re.findall(r"^CMD (.+)$", (DEPLOY / "docker" / "Dockerfile.app").read_text(encoding="utf-8"), re.MULTILINE)
    check_typed(json.loads(typed))


def test_every_wait_is_longer_than_the_grace_of_a_process() -> None:
    grace = Settings().grace
    services = compose()["services"]
    assert parse_duration(services["worker"]["environment"]["WINDLASS_GRACE"]) == grace
    for name in ("worker", "server"):
        assert parse_duration(services[name]["stop_grace_period"]) > grace
    for name in ("windlass-worker", "windlass-server"):
        assert (
            manifest("Deployment", name)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace.total_seconds() + 5
        )
        unit = (DEPLOY / "systemd" / f"{name}.service").read_text(encoding="utf-8")
        assert int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]) > grace.total_seconds() + 5


def test_compose_runs_two_workers_after_one_migration_and_keeps_its_ports_at_home() -> None:
    services = compose()["services"]
    assert services["worker"]["deploy"]["replicas"] == 2
    for name in ("worker", "server"):
        assert services[name]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    for name, service in services.items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            there = (COMPOSE.parent / source).exists() if source.startswith(".") else source in compose()["volumes"]
            assert there, volume
    build = services["migrate"]["build"]
    assert (COMPOSE.parent / build["context"] / build["dockerfile"]).is_file()
    # What has no default is asked for, so that nothing starts with a password that everybody knows.
    assert set(re.findall(r"\$\{(\w+)(?=:-)", COMPOSE.read_text(encoding="utf-8"))) == {"VERSION"}


def test_prometheus_and_grafana_find_what_compose_gives_them() -> None:
    services = compose()["services"]
    scrape = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text(encoding="utf-8"))
    [target] = scrape["scrape_configs"][0]["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    assert host in services["server"]["environment"]["WINDLASS_ALLOWED_HOSTS"].split(",")
    assert int(port) == Settings().port
    mounted = {volume.split(":")[1].rpartition("/")[2] for volume in services["prometheus"]["volumes"]}
    assert set(scrape["rule_files"]) <= mounted
    provider = yaml.safe_load((DEPLOY / "compose" / "grafana-dashboards.yaml").read_text(encoding="utf-8"))["providers"][0]
    assert any(volume.split(":")[1].startswith(provider["options"]["path"]) for volume in services["grafana"]["volumes"])


def test_the_image_is_built_apart_and_runs_without_root() -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
    words = re.findall(r"^([A-Z]+)\b", re.sub(r"\\\n\s*", " ", text), re.MULTILINE)
    stage = {"ARG", "FROM", "ENV", "RUN", "WORKDIR", "COPY"}
    assert set(words) <= stage | {"LABEL", "USER", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    stages = text.split("\nFROM ")[1:]
    assert len(stages) == 2
    assert "-slim" in stages[1]
    assert "pip install" not in stages[1]
    assert re.findall(r"^USER (\d+):\d+$", stages[1], re.MULTILINE) == ["10001"]
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    allowed = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    for source in " ".join(copied).split():
        assert (DEPLOY.parent / source).exists(), source
        assert f"!{source}\n" in allowed, source


def test_probes_ask_public_routes_on_the_port_that_is_open() -> None:
    [container] = manifest("Deployment", "windlass-server")["spec"]["template"]["spec"]["containers"]
    [port] = container["ports"]
    public = {route.path for route in ROUTES if route.least is None}
    assert port["containerPort"] == Settings().port
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
        assert path in public
    [service] = manifest("Service", "windlass")["spec"]["ports"]
    assert service["targetPort"] == port["name"]


def test_pods_are_locked_in_and_selectors_find_them() -> None:
    for name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
    for name in ("windlass-server", "windlass-worker"):
        spec = manifest("Deployment", name)["spec"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    labels = manifest("Deployment", "windlass-server")["spec"]["template"]["metadata"]["labels"]
    assert manifest("Service", "windlass")["spec"]["selector"].items() <= labels.items()
    assert manifest("PodDisruptionBudget", "windlass-server")["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_keda_asks_for_the_slots_that_a_worker_has() -> None:
    scaled = manifest("ScaledObject", "windlass-worker")["spec"]
    assert scaled["scaleTargetRef"]["name"] == manifest("Deployment", "windlass-worker")["metadata"]["name"]
    [trigger] = scaled["triggers"]
    host, path, slots = re.findall(r"http://(\w+)\.default\.svc(/api/v1/scale/)\*\?slots=(\d+)", trigger["metadata"]["url"])[0]
    assert host == manifest("Service", "windlass")["metadata"]["name"]
    assert f"{path}{{lane}}" in {route.path for route in ROUTES}
    assert trigger["metadata"]["valueLocation"] in LaneScale.__annotations__
    [container] = manifest("Deployment", "windlass-worker")["spec"]["template"]["spec"]["containers"]
    pools = {one["name"]: one["value"] for one in container["env"]}["WINDLASS_POOLS"]
    assert int(slots) == sum(pool.slots for pool in parse_pools(pools))
    manifest("TriggerAuthentication", trigger["authenticationRef"]["name"])
    allowed = {one["name"]: one["value"] for one in _server_env()}["WINDLASS_ALLOWED_HOSTS"].split(",")
    assert f"{host}.default.svc" in allowed


def _server_env() -> list[dict[str, str]]:
    env: list[dict[str, str]] = manifest("Deployment", "windlass-server")["spec"]["template"]["spec"]["containers"][0]["env"]
    return env


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="NOT CHECKED: kubectl is not installed")
def test_the_manifests_are_put_together_by_kubectl() -> None:
    done = subprocess.run(["kubectl", "kustomize", KUBERNETES], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert len(made) == len(manifests())
    assert all(one["metadata"]["labels"]["app.kubernetes.io/part-of"] == "windlass" for one in made)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="NOT CHECKED: systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    for each in UNITS:
        # A program that is there: it looks whether the one to be started is.
        text = each.read_text(encoding="utf-8").replace("/srv/shop/.venv/bin/windlass", shutil.which("true") or "/bin/true")
        (tmp_path / each.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / unit.name],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, ours) == (0, []), done.stderr
