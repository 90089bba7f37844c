"""Crontabs as people have them."""

from __future__ import annotations

from windlass.core.crontab import CrontabEntry, Unreadable, parse_crontab

USERS = r"""
# Edit this file to introduce tasks to be run by cron.
SHELL=/bin/bash
MAILTO = "ops@example.org"
PATH=/usr/local/bin:/usr/bin

*/15 * * * *   /usr/bin/env  php  artisan schedule:run
0 3 * * mon-fri	backup --to=/srv/a\%b
CRON_TZ=Europe/Helsinki
30 2 * * *  mail -s "night" me%Dear me,%all is well
@daily rotate
@reboot start-it
61 * * * * never
0 0 30 2 * never
* * * *
@hourly
"""


def entries(text: str, *, has_users: bool = False) -> list[CrontabEntry]:
    return [each for each in parse_crontab(text, has_users=has_users) if isinstance(each, CrontabEntry)]


def test_a_users_crontab_is_read_line_by_line() -> None:
    first, second, third, fourth = entries(USERS)
    env = {"SHELL": "/bin/bash", "MAILTO": "ops@example.org", "PATH": "/usr/local/bin:/usr/bin"}
    assert (first.line, str(first.cadence), first.timezone) == (7, "*/15 * * * *", "UTC")
    assert (first.command, first.env, first.user) == ("/usr/bin/env  php  artisan schedule:run", env, None)
    assert (second.command, second.stdin) == ("backup --to=/srv/a%b", None)
    assert (third.timezone, third.command, third.stdin) == (
        "Europe/Helsinki",
        'mail -s "night" me',
        "Dear me,\nall is well\n",
    )
    assert third.env == env
    assert (str(fourth.cadence), fourth.command) == ("@daily", "rotate")


def test_what_cannot_be_read_is_named_with_its_line() -> None:
    bad = [each for each in parse_crontab(USERS) if isinstance(each, Unreadable)]
    assert [(each.line, each.reason.partition(":")[0]) for each in bad] == [
        (12, "@reboot has no times; start it with the machine instead"),
        (13, "is not a cron expression"),
        (14, "never fires"),
        (15, "is too short"),
        (16, "has no command"),
    ]


def test_a_systems_crontab_names_users() -> None:
    [entry] = entries("17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly\n", has_users=True)
    assert (entry.user, entry.command) == ("root", "cd / && run-parts --report /etc/cron.hourly")


def test_a_zone_nobody_knows_is_refused() -> None:
    [bad] = parse_crontab("CRON_TZ=Mars/Base\n0 * * * * x")
    assert isinstance(bad, Unreadable)
    assert "IANA" in bad.reason


def test_names_depend_on_what_is_run_and_when_and_not_on_the_line() -> None:
    text = "0 * * * * a\n0 * * * * a\n0 * * * * b\n"
    names = [entry.name for entry in entries(text)]
    assert len(set(names)) == 3
    assert names[1] == f"{names[0]}-2"
    assert [entry.name for entry in entries(f"# moved\n\n{text}")] == names
    assert entries("SHELL=/bin/bash\n0 * * * * a")[0].name not in names
