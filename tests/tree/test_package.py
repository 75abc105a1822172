#!/usr/bin/env python3
"""The files that a package needs: one version everywhere, and valid files for desktops."""
import configparser
import os
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

SRCDIR = os.environ.get("MW_SRCDIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                                     "..", "..")
DESKTOP = "share/applications/memwall.desktop"
METAINFO = "share/metainfo/org.memwall.memwall.metainfo.xml"


def path(name):
    return os.path.join(SRCDIR, name)


def text(name):
    with open(path(name), encoding="utf-8") as f:
        return f.read()


class Versions(unittest.TestCase):
    def test_package_and_metainfo_have_the_version_of_configure(self):
        version = re.search(r"AC_INIT\(\[memwall\], \[([^]]+)\]", text("configure.ac")).group(1)
        self.assertEqual(version,
                         re.match(r"memwall \(([^)]+)\)", text("debian/changelog")).group(1))
        release = ElementTree.parse(path(METAINFO)).find("releases/release")
        self.assertEqual(version, release.get("version"))

    def test_bootstrap_installs_every_build_dependency(self):
        packages = re.search(r'debian_packages="([^"]+)"', text("bootstrap")).group(1).split()
        depends = re.search(r"Build-Depends: ((?:.|\n )+)", text("debian/control")).group(1)
        for item in re.findall(r"[a-z][\w.+-]+(?=[ ,:\n]|$)", re.sub(r"<[^>]*>|\([^)]*\)|:any", "", depends)):
            if item != "debhelper-compat":
                self.assertIn(item, packages)
        named = set(packages) - {"gcc", "libc6-dev", "make", "autoconf", "automake"}
        for item in named:
            self.assertIn(item, depends)


class Desktop(unittest.TestCase):
    def test_the_desktop_file_starts_memwall_in_a_terminal(self):
        parser = configparser.ConfigParser(interpolation=None)
        parser.optionxform = str
        parser.read_string(text(DESKTOP))
        entry = parser["Desktop Entry"]
        self.assertEqual(("Application", "memwall", "true"),
                         (entry["Type"], entry["Exec"], entry["Terminal"]))
        self.assertTrue(os.path.exists(path(f"share/icons/{entry['Icon']}.svg")))

    @unittest.skipUnless(shutil.which("desktop-file-validate"),
                         "desktop-file-validate is not installed")
    def test_desktop_file_validate_accepts_it(self):
        subprocess.run(["desktop-file-validate", path(DESKTOP)], check=True)

    @unittest.skipUnless(shutil.which("appstreamcli"), "appstreamcli is not installed")
    def test_appstreamcli_accepts_the_metainfo(self):
        subprocess.run(["appstreamcli", "validate", "--no-net", path(METAINFO)], check=True,
                       stdout=subprocess.DEVNULL)

    def test_the_metainfo_starts_the_desktop_file(self):
        root = ElementTree.parse(path(METAINFO)).getroot()
        self.assertEqual(os.path.basename(DESKTOP), root.find("launchable").text)
        self.assertTrue(os.path.basename(METAINFO).startswith(root.find("id").text))


if __name__ == "__main__":
    unittest.main(verbosity=2)
