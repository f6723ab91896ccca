"""What a user of the Python module relies on. Run by python_test.py with the module it has built."""
import gc
import os
import random
import tempfile
import threading
import time
import unittest

import gyre

MIB = 1 << 20
SEED = int(os.environ.get("GYRE_SEED", "1"))


class StoreCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.store = gyre.Store(self.folder.name, size=128 * MIB)
        self.addCleanup(lambda: self.store.close())
        self.random = random.Random(SEED)

    def assertCode(self, code, call, *args, **kwargs):
        with self.assertRaises(gyre.Error) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.code, code)
        return caught.exception


class Objects(StoreCase):
    def test_round_trip_of_all_sizes(self):
        for size in (0, 1, 4096, 65535, 65536, 3 * MIB + 1):
            body = self.random.randbytes(size)
            serial = self.store.put(f"size-{size}", body, meta=b"m", etag_hash=7)
            with self.store.get(f"size-{size}") as found:
                self.assertEqual((len(found), found.serial, found.meta, found.etag_hash), (size, serial, b"m", 7))
                self.assertEqual(b"".join(found.pieces()), body)
                self.assertEqual(found.read(), body)
                self.assertEqual(found.read(size // 2, 10), body[size // 2:size // 2 + 10])
                self.assertEqual(found.read(size + 5), b"")

    def test_view_is_no_copy_and_read_only(self):
        self.store.put("k", bytes(4096))
        found = self.store.get("k")
        view = memoryview(found)
        self.assertTrue(view.readonly)
        self.assertEqual(view.nbytes, 4096)
        with self.assertRaises(BufferError):
            found.close()
        view.release()
        found.close()
        with self.assertRaises(ValueError):
            memoryview(found)

    def test_object_of_several_pieces_has_no_single_view(self):
        with self.store.writer("long") as writer:
            for _ in range(6):
                writer.write(bytes(MIB))
        with self.store.get("long") as found:
            self.assertGreater(len(found.pieces()), 1)
            with self.assertRaises(BufferError):
                memoryview(found)

    def test_views_outlive_object_overwriting_and_store(self):
        body = self.random.randbytes(2 * MIB)
        self.store.put("k", body)
        views = self.store.get("k").pieces()
        gc.collect()
        self.store.put("k", bytes(2 * MIB))
        for turn in range(80):  # the log goes round more than once
            self.store.put(f"other-{turn}", self.random.randbytes(2 * MIB))
        self.store.close()
        self.assertEqual(b"".join(views), body)

    def test_missing_is_none_or_false(self):
        self.assertIsNone(self.store.get("nothing"))
        self.assertNotIn("nothing", self.store)
        self.assertFalse(self.store.delete("nothing"))
        self.store.put("old", b"x", expires=int(time.time()) - 1)
        self.assertIsNone(self.store.get("old"))

    def test_delete(self):
        self.store.put("k", b"x")
        self.assertIn("k", self.store)
        self.assertTrue(self.store.delete("k", sync=True))
        self.assertNotIn("k", self.store)

    def test_conditions(self):
        first = self.store.put("k", b"1", if_absent=True)
        self.assertEqual(self.assertCode("EXISTS", self.store.put, "k", b"2", if_absent=True).kind, "expected")
        second = self.store.put("k", b"2", if_serial=first)
        self.assertCode("CHANGED", self.store.put, "k", b"3", if_serial=first)
        self.assertCode("CHANGED", self.store.delete, "k", if_serial=first)
        self.assertTrue(self.store.delete("k", if_serial=second))
        with self.assertRaises(ValueError):
            self.store.put("k", b"", if_absent=True, if_serial=1)

    def test_head_has_no_bytes(self):
        self.store.put("k", bytes(100000), meta=b"about")
        with self.store.get("k", head=True) as found:
            self.assertEqual((len(found), found.meta), (100000, b"about"))
            self.assertCode("STATE", found.read)


class Writers(StoreCase):
    def test_commit_at_the_end_of_the_block(self):
        with self.store.writer("k", 6, meta=b"before") as writer:
            writer.write(b"abc")
            self.assertNotIn("k", self.store)
            writer.write(memoryview(b"def"))
            writer.set_meta(b"after", etag_hash=9)
        with self.store.get("k") as found:
            self.assertEqual((found.read(), found.meta, found.etag_hash), (b"abcdef", b"after", 9))
        with self.assertRaises(ValueError):
            writer.write(b"more")

    def test_exception_aborts(self):
        with self.assertRaises(KeyError):
            with self.store.writer("k") as writer:
                writer.write(bytes(3 * MIB))
                raise KeyError
        self.assertNotIn("k", self.store)

    def test_wrong_length_is_an_error(self):
        with self.assertRaises(gyre.Error) as caught:
            with self.store.writer("k", 10) as writer:
                writer.write(b"short")
        self.assertEqual(caught.exception.code, "LENGTH")

    def test_commit_gives_the_serial(self):
        writer = self.store.writer("k")
        writer.write(b"x")
        serial = writer.commit()
        with self.store.get("k") as found:
            self.assertEqual(found.serial, serial)


class Keys(unittest.TestCase):
    def test_forms(self):
        key = gyre.Key.of("name")
        self.assertEqual(key, gyre.Key.of(b"name"))
        self.assertEqual(key, gyre.Key.from_hex(key.hex()))
        self.assertEqual(key, gyre.Key.digest(bytes(key)))
        self.assertEqual(len({key, gyre.Key.of("name"), gyre.Key.of("other")}), 2)
        self.assertNotEqual(gyre.Key.parts("s3", "a", "b"), gyre.Key.parts("kv", "a", "b"))
        self.assertNotEqual(gyre.Key.url("/x", "a"), gyre.Key.url("/x", "b"))

    def test_bad_ones_are_refused(self):
        for call, args, error in ((gyre.Key.digest, (b"short",), ValueError), (gyre.Key.from_hex, ("zz",), ValueError),
                                  (gyre.Key.parts, ("what", "a"), ValueError), (gyre.Key.parts, ("s3",), TypeError),
                                  (gyre.Key.parts, ("s3", b"a\0", "b"), gyre.Error), (gyre.Key.of, (3,), TypeError),
                                  (gyre.Key, (), TypeError)):
            with self.subTest(call=call, args=args), self.assertRaises(error):
                call(*args)


class Stores(unittest.TestCase):
    def test_opened_again_it_has_everything(self):
        with tempfile.TemporaryDirectory() as folder:
            with gyre.Store(folder, 64 * MIB) as store:
                store.put("k", b"kept")
                store.sync()
            with gyre.Store(folder, mode="existing") as store:
                self.assertEqual(store.get("k").read(), b"kept")
                self.assertGreater(store.stats()["capacity"], 0)
            with gyre.Store(folder, 64 * MIB, mode="reset") as store:
                self.assertNotIn("k", store)

    def test_errors_say_what_to_do(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(gyre.Error) as caught:
                gyre.Store(folder, mode="existing")
            self.assertEqual(caught.exception.code, "NO_STORE")
            self.assertIn(folder, str(caught.exception))
            with self.assertRaises(ValueError):
                gyre.Store(folder, mode="what")

    def test_closed_store_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            store = gyre.Store(folder, 64 * MIB)
            store.close()
            store.close()
            for call in (lambda: store.get("k"), lambda: store.put("k", b""), store.sync, store.stats, lambda: "k" in store):
                with self.assertRaises(gyre.Error) as caught:
                    call()
                self.assertEqual(caught.exception.code, "CLOSED")

    def test_threads_work_side_by_side_and_close_waits(self):
        with tempfile.TemporaryDirectory() as folder:
            store = gyre.Store(folder, 128 * MIB)
            wrong = []

            def work(number):
                body = bytes([number]) * 100000
                try:
                    for turn in range(1000000):
                        store.put(f"{number}-{turn % 10}", body)
                        found = store.get(f"{number}-{turn % 10}")
                        if found is not None and found.read() != body:
                            wrong.append(number)
                except gyre.Error as error:
                    if error.code != "CLOSED":
                        wrong.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            while store.stats()["puts"] < 200 and not wrong:
                time.sleep(0.01)
            store.close()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])

    def test_nothing_leaks(self):
        def resident():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

        with tempfile.TemporaryDirectory() as folder, gyre.Store(folder, 64 * MIB) as store:
            store.put("k", bytes(50000), meta=b"m" * 100)

            def round_trips(count):
                for _ in range(count):
                    with store.get("k") as found:
                        memoryview(found).release() if len(found.pieces()) == 1 else None
                        found.meta, found.read(0, 100)
                    with self.assertRaises(gyre.Error):
                        store.put("k", b"", if_absent=True)

            round_trips(500)
            before = resident()
            round_trips(5000)
            self.assertLess(resident() - before, 2000)


if __name__ == "__main__":
    unittest.main()
