"""What pasting, logging and terminals do to a report: the facts stay the same, and nothing ever raises."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reports.conftest import NAMES, SAMPLES

from labkit.hardware.diagnosis import diagnose
from labkit.hardware.diagnosis.finding import SEVERITIES
from labkit.hardware.reports import KINDS, ReportError, decode, find, read
from labkit.hardware.reports.text import QUOTED, clean, lines

TEXTS = {name: (SAMPLES / name).read_text(encoding="utf-8") for name in NAMES}

DRESSINGS = {
    "windows line ends": lambda line: line + "\r",
    "a quotation": lambda line: "> " + line,
    "mpirun": lambda line: "[1,0]<stdout>:" + line,
    "srun --label": lambda line: "0: " + line,
    "torchrun": lambda line: "[default3]:" + line,
    "docker compose": lambda line: "trainer-1  | " + line,
    "an ISO time": lambda line: "2025-03-02T11:00:01.120Z " + line,
    "ray": lambda line: "(RayWorkerWrapper pid=1148, ip=10.0.0.3) " + line,
    "syslog": lambda line: "Mar  2 11:00:01 node7 slurmd[812]: " + line,
    "a time of day and a level": lambda line: "11:00:01,120 INFO " + line,
    "a container's log": lambda line: "2025-03-02T11:00:01.120000000Z stdout F " + line,
    "kubectl --prefix": lambda line: "[pod/train-0/main] " + line,
    "bold": lambda line: "\x1b[1m" + line + "\x1b[0m",
    "bold without its escapes": lambda line: "[1m" + line + "[0m",
    "indentation": lambda line: "    " + line,
    "hard spaces": lambda line: line.replace(" ", "\xa0"),
    "spaces at the end": lambda line: line + "   ",
}
PREFIXED = (
    "error_timeout.txt",
    "error_oom_new.txt",
    "error_lost.txt",
    "nccl_log_errors.txt",
    "nccl_alltoall_mpi.txt",
)


def _fits(name: str, dressing: str) -> bool:
    """Not where the sample has such a prefix of its own, nor where indentation is what the format is made of."""
    if dressing == "indentation":
        return not name.startswith("smi_q")
    return name not in PREFIXED or dressing not in ("torchrun", "mpirun", "docker compose", "ray")


@pytest.mark.parametrize(("name", "dressing"), [(n, d) for n in NAMES for d in DRESSINGS if _fits(n, d)])
def test_dressed_reports_hold_the_same_facts(name, dressing):
    dressed = "\n".join(map(DRESSINGS[dressing], TEXTS[name].split("\n")))
    before, after = read(TEXTS[name]), read(dressed)
    assert [report.to_dict() for report in after] == [report.to_dict() for report in before]


def test_all_reports_in_one_file():
    reading = diagnose("\n\n".join(TEXTS.values()))
    assert {report.kind for report in reading.reports} == set(KINDS)
    assert sum(report.kind == "smi_table" for report in reading.reports) == 5


def test_text_around_a_report_is_left_alone():
    text = (
        "Hi all,\nmy run hangs, see below. Thanks!\n\n```\n"
        + TEXTS["topo_2018_v100.txt"]
        + "```\nAny idea?\n-- Kim\n"
    )
    found = find(text)
    assert [report.to_dict() for report in found.reports] == [
        report.to_dict() for report in read(TEXTS["topo_2018_v100.txt"])
    ]
    assert found.strange == (1, "Hi all,")


def test_endless_lines_are_quoted_in_part():
    assert len(next(iter(lines("x" * 100_000)))) < 10_000
    text = "RuntimeError: CUDA error: out of memory " + "y" * 5000
    assert len(diagnose(text).findings[0].evidence) <= QUOTED


def test_clean_leaves_what_is_no_prefix():
    for line in (
        "GPU0\t X \tNV12",
        "    Bus : 0x07",
        "1024 256 float sum -1",
        "| 0  N/A |",
        "[0] NCCL INFO x",
        "Bus: 7",
    ):
        assert clean(line) == line


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_redirected_files(encoding):
    assert decode("NVIDIA-SMI – 550\n".encode(encoding)) == "NVIDIA-SMI – 550\n"


@pytest.mark.parametrize("data", [bytes(range(256)) * 50, b"\x7fELF\x02\x01\x01" + bytes(300)])
def test_binary_files_are_refused(data):
    with pytest.raises(ReportError, match="binary"):
        decode(data)


def test_latin_1_text_is_still_text():
    assert "Temperatur" in decode("Temperatur 40 °C\n".encode("latin-1"))


@pytest.mark.parametrize("value", [None, 3, b"NVIDIA-SMI", ["a"]])
def test_only_text_is_read(value):
    with pytest.raises(ReportError, match="text"):
        read(value)


@pytest.mark.parametrize("text", ["", "\n\n  \n", "\x00\x00"])
def test_nothing_to_read(text):
    reading = diagnose(text)
    assert reading.reports == ()
    assert [finding.severity for finding in reading.findings] == ["note"]


OTHERS = (
    "total        used        free\nMem:           31Gi        12Gi\n",
    "+-----+-------+\n| id  | name  |\n+-----+-------+\n|  1  | GPU 7 |\n+-----+-------+\n",
    "[0] NVIDIA A100-SXM4-40GB | 36'C,   0 % |     3 / 40536 MB |\n",
    "gpuId 0:\n        U U U U U U\n",
    "<html><body><gpu>no</gpu></body></html>\n",
    "================ ROCm System Management Interface ================\nGPU  Temp  AvgPwr\n0    35c   38W\n",
)


@pytest.mark.parametrize("text", OTHERS)
def test_tables_of_other_tools_are_not_taken_for_ours(text):
    reading = diagnose(text)
    assert reading.reports == ()
    assert "Nothing was recognised" in reading.findings[0].message
    assert reading.findings[0].evidence in text


def check(text: str) -> None:
    """Reading never raises, and its answer has the documented form."""
    reading = diagnose(text)
    answer = reading.to_dict()
    assert set(answer) == {"reports", "findings"}
    for report in answer["reports"]:
        assert set(report) == {"kind", "facts", "cut"}
        assert report["kind"] in KINDS
        assert isinstance(report["cut"], bool)
    for finding in answer["findings"]:
        assert set(finding) == {"severity", "message", "evidence"}
        assert finding["severity"] in SEVERITIES
        assert finding["message"]
    assert repr(reading)
    assert "<table" in reading._repr_html_() or not answer["reports"]


@settings(max_examples=150)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_report_cut_anywhere_is_read_as_far_as_it_goes(name, data):
    text = TEXTS[name]
    start = data.draw(st.integers(0, len(text) // 2))
    end = data.draw(st.integers(start, len(text)))
    check(text[start:end])


@settings(max_examples=200)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_mangled_reports_never_raise(name, data):
    characters = list(TEXTS[name])
    for _ in range(data.draw(st.integers(1, 30))):
        at = data.draw(st.integers(0, len(characters) - 1))
        characters[at] = data.draw(
            st.sampled_from(
                ["", "\n", "\t", " ", "9" * 40, "-", "|", "<", ">", '"', "GPU0", "N/A", "²", "\x00"]
            )
        )
    check("".join(characters))


@settings(max_examples=100)
@given(st.lists(st.sampled_from([line for text in TEXTS.values() for line in text.split("\n")]), max_size=60))
@example(["GPU0", "\tGPU0\tGPU1", "GPU0\t X"])
def test_lines_of_reports_in_any_order_never_raise(chosen):
    check("\n".join(chosen))


@settings(max_examples=100)
@given(st.text(max_size=400))
def test_any_text_never_raises(text):
    check(text)
