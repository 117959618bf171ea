"""Files that are really there, reads that are really made: counted here, and by the operating system."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from labkit.compute import feeding, pipeline
from labkit.compute.read_meter import ReadMeter
from labkit.course.photo import photograph
from labkit.errors import LabkitError


@pytest.fixture
def data(tmp_path) -> feeding.Dataset:
    return feeding.write(tmp_path / "crops", feeding.crops(photograph(), 150, side=16), per_shard=40)


def test_both_forms_hold_the_same_samples(data):
    one, other = data.disk(), data.disk()
    loose = list(feeding.loose(one, data.sample_bytes))
    sharded = list(feeding.sharded(other, data.sample_bytes, read_bytes=3 * data.sample_bytes))
    assert loose == sharded
    assert [feeding.number_of(sample) for sample in loose] == list(range(150))
    assert (one.counts.opens, one.counts.reads) == (150, 150)
    assert (other.counts.opens, other.counts.reads) == (4, 14 + 14 + 14 + 10)
    assert one.counts.bytes == other.counts.bytes == 150 * data.sample_bytes


def test_the_operating_system_counts_the_same(data):
    import psutil

    process = psutil.Process()
    if not hasattr(process.io_counters(), "read_count"):
        pytest.skip("the operating system does not count reads here")
    disk = data.disk()
    names = disk.files("shards")
    before = process.io_counters()
    for name in names:
        with disk.open(name) as file:
            while file.read(4096):
                pass
    after = process.io_counters()
    # each shard ends with a read that returns nothing, and asking for the counters reads a little as well
    ends = len(names)
    assert 0 <= after.read_count - before.read_count - disk.counts.reads - ends <= 20
    assert 0 <= after.read_chars - before.read_chars - disk.counts.bytes < 20_000


def test_the_log_tells_every_access(data):
    disk = data.disk()
    with disk.open("shards/000.bin") as file:
        file.read(10)
        file.read(5)
    assert disk.log == (
        feeding.Access("open", "shards/000.bin"),
        feeding.Access("read", "shards/000.bin", 0, 10),
        feeding.Access("read", "shards/000.bin", 10, 5),
    )
    assert repr(disk) == "Disk(Counts(1 opens, 2 reads, 15 B, 7.5 B a read))"


def test_threads_lose_no_count(data):
    disk = data.disk()
    work = [threading.Thread(target=lambda: list(feeding.loose(disk, data.sample_bytes))) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert (disk.counts.opens, disk.counts.reads) == (600, 600)


@pytest.mark.parametrize("prefetch", pipeline.HOW)
@pytest.mark.parametrize(("source", "opens"), [("loose", 150), ("shards", 4)])
def test_every_way_of_feeding_gives_every_sample(data, prefetch, source, opens):
    seen = []
    fed = pipeline.feed(data, source, prefetch, batch=32, step_s=1e-4, each=seen.append)
    assert seen == [32, 64, 96, 128, 150]
    assert fed.counts.opens == opens
    assert fed.counts.bytes == 150 * data.sample_bytes
    assert 0 <= fed.waited_s <= fed.seconds
    assert fed.to_dict()["how"] == "measured"


def test_batches_are_normalised(data):
    batches = list(pipeline.prepare(feeding.loose(data.disk(), data.sample_bytes), data.shape, 64, effort=0))
    assert [batch.shape for batch in batches] == [(64, 16, 16), (64, 16, 16), (22, 16, 16)]
    assert np.allclose(batches[0].mean(axis=(1, 2)), 0, atol=1e-4)
    assert np.allclose(batches[0].std(axis=(1, 2)), 1, atol=1e-3)


def test_what_fails_while_reading_ahead_is_said(data):
    broken = feeding.Dataset(data.folder, data.count, (40, 40), data.per_shard)
    for prefetch in ("thread", "process"):
        with pytest.raises(LabkitError, match="Reading ahead failed: ValueError"):
            pipeline.feed(broken, "loose", prefetch)


def test_forgetting_leaves_the_files_alone(data):
    before = list(feeding.sharded(data.disk(), data.sample_bytes))
    assert feeding.forget(data.disk()) in (True, False)
    assert list(feeding.sharded(data.disk(), data.sample_bytes)) == before


def test_the_meter_sees_reads(data):
    meter = ReadMeter()
    if not meter.available:
        assert meter.rates() == {}
        return
    list(feeding.sharded(data.disk(), data.sample_bytes))
    rates = meter.rates()
    assert set(rates) == {"files (GB/s)", "disk (MB/s)"}
    assert rates["files (GB/s)"] > 0


def test_bad_input_is_a_sentence(data, tmp_path):
    with pytest.raises(LabkitError, match=r"no file 'shards/9\.bin'"):
        data.disk().open("shards/9.bin")
    with data.disk().open("shards/000.bin") as file, pytest.raises(LabkitError, match="1 or more"):
        file.read(0)
    with pytest.raises(LabkitError, match="uint8"):
        feeding.write(tmp_path, np.zeros((3, 4, 4)))
    with pytest.raises(LabkitError, match="'loose' or 'shards'"):
        pipeline.feed(data, "tape")
