"""Nsight Compute's output read, and the counters that follow."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_pages import RESULTS
from result_files import read_frame

from autotune.measure.ncu import counters, parse

RECORDED = Path(__file__).parents[1] / "support" / "ncu-lmono.csv"


def test_the_counters_of_a_recorded_run() -> None:
    """Against the committed table of the same run, which another program made."""
    frame = parse(RECORDED.read_text(encoding="utf-8"))
    assert list(frame["kernel"]) == ["match"] * 4
    assert frame["struct"].nunique() == 3  # two of them only order the data otherwise
    runs = [(str(i), struct, ["match"]) for i, struct in enumerate(frame["struct"])]
    found = counters(frame, runs, ("match",))
    table = read_frame(RESULTS / "mummergpu-h200-traffic.csv")
    rows = table[table["workload"] == "lmono"].reset_index(drop=True)
    assert len(rows) == len(found) == 4
    for i, row in rows.iterrows():
        of = found[str(i)]["match"]
        assert of == pytest.approx(
            {
                "profiled_ms": row["match_ms"], "launches": 1,
                "dram_bytes": row["dram_read_bytes"] + row["dram_write_bytes"],
                "dram_read_bytes": row["dram_read_bytes"],
                "l2_read_bytes": 32 * row["l2_sectors"],
                "l2_sectors_per_request": row["l2_sectors"] / row["l2_requests"],
                "global_loads": row["l1_load_requests"],
                "global_sectors_per_request": row["l1_load_sectors"] / row["l1_load_requests"],
                "texture_bytes": 32 * row["texture_sectors"], "dram_busy_share": row["dram_busy_percent"] / 100,
                "l2_busy_share": row["l2_busy_percent"] / 100, "sm_busy_share": of["sm_busy_share"],
                "achieved_occupancy": row["warps_active_percent"] / 100,
                "warp_execution_efficiency": row["threads_per_instruction"] / 32,
            }
        )  # fmt: skip
        assert 0.1 < of["sm_busy_share"] < 0.35
    assert counters(frame, [], ("print",)) == {}
    for wrong in (runs[1:], [*runs, runs[0]], [runs[2], runs[1], runs[0], runs[3]], []):
        with pytest.raises(ValueError, match="4 launches that are not the"):
            counters(frame, wrong, ("match",))


def test_the_counters_of_two_recorded_kernels() -> None:
    """The control of allpairs, which adds by atomics, and a configuration with tensor cores and shared memory."""
    frame = parse((RECORDED.parent / "ncu-allpairs.csv").read_text(encoding="utf-8"))
    assert list(frame["kernel"]) == ["allpairs"] * 7 and frame["struct"].nunique() == 7
    runs = [(str(i), struct, ["allpairs"]) for i, struct in enumerate(frame["struct"])]
    control, tensor = (counters(frame, runs, ("allpairs",))[one]["allpairs"] for one in ("0", "2"))
    assert control == pytest.approx(
        {
            "profiled_ms": 1208.777472, "launches": 1, "dram_bytes": 401_468_596_224 + 1_104_953_344,
            "dram_read_bytes": 401_468_596_224, "l2_read_bytes": 32 * 133_810_202_007,
            "l2_sectors_per_request": 133_810_202_007 / 133_808_856_213, "global_loads": 8_589_934_592,
            "global_stores": 0, "global_sectors_per_request": 32, "bank_conflicts": 0, "instructions": 126_699_690_194,
            "issue_busy_share": 0.1003, "memory_busy_share": 0.9177, "texture_bytes": 0, "l1_hit_share": 0.4994,
            "l2_hit_share": 137_385_838_172 / (137_385_838_172 + 25_071_747_285), "dram_busy_share": 0.0692,
            "l2_busy_share": 0.7704, "sm_busy_share": 0.1003, "achieved_occupancy": 0.8647,
            "warp_execution_efficiency": 28.75 / 32, "stall_barrier_warps": 0, "stall_dispatch_stall_warps": 0.09,
            "stall_imc_miss_warps": 0, "stall_lg_throttle_warps": 0.47, "stall_long_scoreboard_warps": 76.6,
            "stall_math_pipe_throttle_warps": 0.03, "stall_mio_throttle_warps": 14.57,
            "stall_no_instruction_warps": 0.26, "stall_not_selected_warps": 0.28, "stall_short_scoreboard_warps": 31.28,
            "stall_tex_throttle_warps": 0, "stall_wait_warps": 3.2,
        }
    )  # fmt: skip
    assert tensor["global_store_sectors_per_request"] == pytest.approx(33_543_924 / 8_388_608)
    assert tensor["bank_conflicts"] == 17_213_812 and tensor["global_stores"] == 8_388_608


def output(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """What ncu prints for launches (kernel's name, metrics)."""
    columns = list(dict.fromkeys(name for _, metrics in rows for name in metrics))
    head = ["ID", "Kernel Name", *columns]
    lines = [head, ["", "", *("byte" for _ in columns)]]
    lines += [[str(i), kernel, *(str(m.get(c, "")) for c in columns)] for i, (kernel, m) in enumerate(rows)]
    table = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return f"==PROF== Connected\n{table}\n==PROF== Disconnected\n"


def test_kernels_as_they_stand_are_known_by_their_place_alone() -> None:
    called = [
        "vector_add(float *, const float *, int)",
        "void dense::times<(int)1, float>(T2 *, int)",
        "other(int)",
    ]
    frame = parse(output([(name, {"gpu__time_duration.sum": i + 1}) for i, name in enumerate(called)]))
    runs = [("a=1", "", ["vector_add"]), ("a=2", "", ["dense::times"])]
    found = counters(frame, runs, ("vector_add", "dense::times"))
    assert {one: list(of) for one, of in found.items()} == {"a=1": ["vector_add"], "a=2": ["dense::times"]}
    with pytest.raises(ValueError, match="2 launches that are not the 2"):
        counters(frame, runs[::-1], ("vector_add", "dense::times"))


def test_launches_are_added_up_and_shares_weighted_by_time() -> None:
    ns_of = {"1,000,000": 1, "3,000,000": 3}

    def launch(ns: str, read: str, hit: float | str) -> tuple[str, dict[str, Any]]:
        metrics = {
            "gpu__time_duration.sum": ns, "dram__bytes_read.sum": read, "l1tex__t_sector_hit_rate.pct": hit,
            "lts__t_sectors_lookup_hit.sum": 3 * ns_of[ns], "lts__t_sectors_lookup_miss.sum": 1,
            "l1tex__t_sectors_pipe_tex.sum": "n/a",
        }  # fmt: skip
        return "void lengths<Vab12>(points, length)", metrics

    frame = parse(output([launch("1,000,000", "2,500,000", 10), launch("3,000,000", "500,000", 50)]))
    runs = [("failed", "Vab12", []), ("x=1", "Vab12", ["lengths", "lengths"])]
    found = counters(frame, runs, ("lengths",))
    assert list(found) == ["x=1"]
    assert found["x=1"]["lengths"] == {
        "profiled_ms": pytest.approx(4.0), "launches": 2, "dram_read_bytes": pytest.approx(3e6),
        "l1_hit_share": pytest.approx(0.4), "l2_hit_share": pytest.approx(12 / 14),
    }  # fmt: skip


def test_a_ratio_without_requests_is_left_out() -> None:
    metrics = {
        "gpu__time_duration.sum": 5, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 0,
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 0,
    }  # fmt: skip
    frame = parse(output([("void a<V1>(x)", metrics), ("other(int)", metrics)]))
    found = counters(frame, [("x=1", "V1", ["a"])], ("a",))
    assert found == {"x=1": {"a": {"profiled_ms": pytest.approx(5e-6), "launches": 1, "global_loads": 0}}}


LAUNCH = st.tuples(
    st.sampled_from(["match", "print"]), st.sampled_from(["Va1", "Vb2"]), st.integers(1, 10**12), st.integers(0, 10**15)
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.lists(LAUNCH, min_size=1, max_size=6))
def test_any_table_is_read_as_it_was_printed(launches: list[Any]) -> None:
    rows = [
        (
            f"void {kernel}<{struct}>(int)",
            {"gpu__time_duration.sum": f"{time:,}", "dram__bytes_read.sum": f"{read:,}"},
        )
        for kernel, struct, time, read in launches
    ]
    frame = parse(output(rows))
    assert list(frame[["kernel", "struct"]].itertuples(index=False, name=None)) == [
        one[:2] for one in launches
    ]
    assert list(frame["gpu__time_duration.sum"]) == [time for _, _, time, _ in launches]
    runs = [(str(i), struct, [kernel]) for i, (kernel, struct, _, _) in enumerate(launches)]
    found = counters(frame, runs, ("match", "print"))
    assert [
        of[kernel]["dram_read_bytes"] for of, (kernel, *_) in zip(found.values(), launches, strict=True)
    ] == [one[3] for one in launches]


@pytest.mark.parametrize("text", ["", "==ERROR== nothing", '"no","table"\n"1","2"\n'])
def test_output_without_a_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no table"):
        parse(text)
