import unittest

from byteranges import Unsatisfiable, parse


class Parse(unittest.TestCase):
    def test_closed_range(self) -> None:
        self.assertEqual(parse("bytes=0-9", 100), [(0, 9)])

    def test_open_range(self) -> None:
        self.assertEqual(parse("bytes=90-", 100), [(90, 99)])

    def test_end_beyond_body(self) -> None:
        self.assertEqual(parse("bytes=90-500", 100), [(90, 99)])

    def test_last_bytes(self) -> None:
        self.assertEqual(parse("bytes=-10", 100), [(90, 99)])

    def test_more_last_bytes_than_there_are(self) -> None:
        self.assertEqual(parse("bytes=-500", 100), [(0, 99)])

    def test_several(self) -> None:
        self.assertEqual(parse("bytes=0-0, -1", 100), [(0, 0), (99, 99)])

    def test_nothing_within_body(self) -> None:
        with self.assertRaises(Unsatisfiable):
            parse("bytes=100-", 100)

    def test_other_units(self) -> None:
        with self.assertRaises(ValueError):
            parse("lines=0-9", 100)
