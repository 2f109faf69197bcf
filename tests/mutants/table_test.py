#!/usr/bin/env python3
"""The table of mutants fits the sources, and a report that is checked in speaks of just these.

That the mutants are killed is run.py's to say; this needs no build of them.
"""

import tempfile
import unittest
from collections import Counter
from pathlib import Path

from generate import mutated, remove_others
from report import PAGE, REPORT, page, read_report
from table import FAMILIES, read_family, read_table


class TableOfMutants(unittest.TestCase):
    def test_every_text_occurs_in_its_file_once_and_overlaps_no_other(self):
        by_file = {}
        for mutant in read_table():
            by_file.setdefault(mutant.file, []).append(mutant)
        for file, mutants in by_file.items():
            with self.subTest(file):
                self.assertNotIn("CAPO_MUTANT", mutated(file, []))
                self.assertEqual(mutated(file, mutants).count("::capo::mutants::on("), len(mutants))

    def test_what_has_no_mutants_any_more_is_removed(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file in ("core/a.h", "core/b.h"):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_text("")
            remove_others(folder, {"core/a.h"})
            self.assertEqual([path.name for path in folder.glob("core/*")], ["a.h"])

    def test_names_are_given_once(self):
        repeated = [name for name, times in Counter(m.name for m in read_table()).items() if times > 1]
        self.assertEqual(repeated, [])

    def test_every_mutant_changes_something(self):
        for mutant in read_table():
            self.assertNotEqual(mutant.old, mutant.new, mutant.name)
            self.assertTrue(mutant.new or mutant.is_statement, mutant.name)

    def test_there_are_a_hundred_and_eight_a_family(self):
        self.assertGreaterEqual(len(read_table()), 100)
        for family in FAMILIES:
            self.assertGreaterEqual(len(read_family(family)), 8, family)

    @unittest.skipUnless(REPORT.exists(), "no report is checked in")
    def test_the_report_has_a_killer_of_each_kind_for_every_mutant(self):
        report = read_report()
        self.assertEqual(list(report), [mutant.name for mutant in read_table()])
        for mutant in read_table():
            with self.subTest(mutant.name):
                self.assertEqual(tuple(report[mutant.name]), FAMILIES[mutant.family])
                self.assertNotIn(None, report[mutant.name].values())

    @unittest.skipUnless(REPORT.exists(), "no report is checked in")
    def test_the_page_is_that_of_the_report(self):
        self.assertEqual(PAGE.read_text(), page(read_table(), read_report()))


if __name__ == "__main__":
    unittest.main()
