import unittest

from byteranges import body_of

BODY = bytes(range(100))


class Serve(unittest.TestCase):
    def test_first_bytes(self) -> None:
        self.assertEqual(body_of("bytes=0-9", BODY), [BODY[:10]])

    def test_whole_body_by_its_end(self) -> None:
        self.assertEqual(body_of("bytes=-150", BODY), [BODY])
