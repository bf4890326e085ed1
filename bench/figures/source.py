# SPDX-License-Identifier: BSD-3-Clause
"""source - programs of others, from the source packages of the distribution.

apt-get fetches them with an apt configuration of its own below the folder of the results: the configuration and
the lists of the system stay as they are."""
import re
import shutil

from figures import run

LISTS = "deb-src $(SITE) $(RELEASE) $(COMPONENT)"  # apt-get replaces these names


class NoSource(Exception):
    """Why there is no source."""


def add_options(p, what):
    """Add the options of find() to a parser."""
    p.add_argument("--no-fetch", action="store_true",
                   help=f"do not fetch {what}'s source if it is not in DIR/source of --out")
    p.add_argument("--seconds", type=run.count, default=60, metavar="N",
                   help="for each of the two steps that fetch it; default 60")


def unpack(archive, source, inside):
    """Unpack an archive, or the one folder inside of it."""
    parts = [part for part in inside.split("/") if part]
    some = ["--wildcards", "/".join(["*", *parts])] if parts else []
    run.output(["tar", "-xf", archive, "-C", source, f"--strip-components={len(parts) + 1}", *some])


def fetch(out, seconds, package, inside=""):
    """Fetch the source; the packages' own places have it, too.  apt-get checks the signatures."""
    apt, source = out / "apt", out / "source"
    command = ["apt-get", "-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::lists={apt}/lists",
               "-o", "Dir::Etc::trusted=/usr/share/keyrings/debian-archive-keyring.gpg",
               "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=0",
               "-o", "Acquire::http::Timeout=5", "-o", "Acquire::https::Timeout=5"]
    for folder in (apt / "lists/partial", apt / "cache/archives/partial", source):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        lists = run.output(["apt-get", "indextargets", "--format", LISTS, "Created-By: Packages"])[0]
        (apt / "sources.list").write_text("\n".join(sorted(set(lists.splitlines()))) + "\n")
        try:
            run.output([*command, "update"], limit=seconds)
        except run.Failed as why:  # if a list of one place is missing, the package may be in another
            if "takes longer" in str(why):
                raise
        run.output(["env", "-C", out, *command, "source", "--download-only", "--tar-only", package], limit=seconds)
        for archive in out.glob(f"{package}_*.orig.tar.*"):
            unpack(archive, source, inside)
    except run.Failed as why:
        if "takes longer" in str(why):
            raise NoSource(f"apt-get took longer than {seconds} seconds") from None
        found = re.search(r"Failed to fetch.*|^E: .*", str(why), re.M)
        raise NoSource(found[0].removeprefix("E: ") if found else str(why)) from None
    finally:
        shutil.rmtree(apt, ignore_errors=True)


def find(a, what, mark, package, inside=""):
    """Return the folder source of --out, which has the file mark, or end.  Of the package only the folder inside is
    kept, if that is not all of it."""
    source, why = a.out / "source", "it is not there"
    try:
        if not (source / mark).exists() and not a.no_fetch:
            fetch(a.out, a.seconds, package, inside)
    except NoSource as reason:
        why = reason
    if not (source / mark).exists():
        folder = f"the folder {inside} of " * bool(inside)
        run.die(run.NOT_THERE, f"no source of {what}: {why}; unpack {folder}the source package {package} as '{source}'")
    return source
