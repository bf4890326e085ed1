# SPDX-License-Identifier: BSD-3-Clause
"""source - the source packages of the distribution.

apt-get fetches them with a configuration of its own: that of the system, and its lists, stay as they are."""
import pathlib
import re
import shutil

from figures import run

LISTS = "deb-src $(SITE) $(RELEASE) $(COMPONENT)"  # apt-get replaces these names


class NoSource(Exception):
    """Why there is no source."""


def fetch(package, version, into, seconds):
    """Fetch a source package of this version, unpack it as the folder into, and return that; the limit is in seconds
    for each of the two steps of apt-get.  Files of its own go beside the folder."""
    into = pathlib.Path(into)
    apt = into.parent / f"{into.name}-apt"
    try:
        archive = download(package, version, apt, seconds)
        part = into.parent / f"{into.name}-part"  # so that a folder of the right name is whole
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        run.output(["tar", "-xf", archive, "-C", part, "--strip-components=1"])
        shutil.rmtree(into, ignore_errors=True)
        part.rename(into)
    except run.Failed as why:
        found = re.search(r"Failed to fetch.*|^E: .*", str(why), re.M)
        raise NoSource(found[0].removeprefix("E: ") if found else str(why)) from None
    finally:
        shutil.rmtree(apt, ignore_errors=True)
    return into


def download(package, version, apt, seconds):
    """Return the archive; the packages' own places have it, too.  apt-get checks the signatures."""
    command = ["apt-get", "-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
               "-o", f"Dir::State::lists={apt}/lists",
               "-o", "Dir::Etc::trusted=/usr/share/keyrings/debian-archive-keyring.gpg",
               "-o", f"Dir::Cache={apt}/cache", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=0",
               "-o", "Acquire::http::Timeout=5", "-o", "Acquire::https::Timeout=5"]
    for folder in (apt / "lists/partial", apt / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    lists = run.output(["apt-get", "indextargets", "--format", LISTS, "Created-By: Packages"])[0]
    (apt / "sources.list").write_text("\n".join(sorted(set(lists.splitlines()))) + "\n")
    try:
        run.output([*command, "update"], limit=seconds, name="apt-get update")
    except run.Failed as why:  # if a list of one place is missing, the package may be in another
        if "takes longer" in str(why):
            raise
    run.output(["env", "-C", apt, *command, "source", "--download-only", "--tar-only", package], limit=seconds,
               name="apt-get source")
    archives = [file for file in apt.glob(f"{package}_*.orig.tar.*") if file.suffix in (".gz", ".xz", ".bz2")]
    right = [archive for archive in archives if archive.name.startswith(f"{package}_{version}.orig.")]
    if not right:
        raise NoSource(f"the distribution has {', '.join(archive.name for archive in archives) or 'none'}; expected "
                       f"{package} {version}")
    return right[0]
