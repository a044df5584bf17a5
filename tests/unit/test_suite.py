"""The development suite: regret and ranks, splits, and a run that goes on where it was interrupted."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two small sets in the layout of the suite, one of them multi-label."""
    place = tmp_path_factory.mktemp("sets")
    X, y = make_blobs(240, n_features=16, centers=4, random_state=0)
    parts = dict(zip(("train", "new", "query"), np.split(np.arange(240), [160, 200]), strict=True))
    matrix = np.eye(4, dtype=np.uint8)[y] | np.eye(4, dtype=np.uint8)[(y + 1) % 4]
    for name, labels in (("classes", y), ("sets", matrix)):
        np.savez(place / f"{name}.npz", features=X.astype(np.float16), labels=labels, **parts)
    return place


def line(held, name, own, real, bits=16, seed=0):
    return {"set": held, "name": name, "own": own, "real": real, "bits": bits, "seed": seed, "split": "test"}


@pytest.fixture
def command(monkeypatch, capsys):
    """What a command of the suite prints."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "")  # a run sets them for its processes; the test puts them back

    def run(*words):
        import suite

        options = suite.parser().parse_args([str(word) for word in words])
        options.command(options)
        return capsys.readouterr().out

    return run


def test_regret_is_what_the_choice_of_the_other_sets_loses():
    from suite_scores import regret

    scores = {"a": {"x": 0.9, "y": 0.5}, "b": {"x": 0.4, "y": 0.6}, "c": {"x": 0.7, "y": 0.65}}
    found = {row["set"]: row for row in regret(scores)}
    # a: the others have x (0.4 + 0.7) / 2 < y (0.6 + 0.65) / 2; b and c choose x, which is far ahead on a
    assert [found[name]["choice"] for name in "abc"] == ["y", "x", "x"]
    assert [found[name]["regret"] for name in "abc"] == pytest.approx([40, 20, 0])


def test_a_set_has_no_say_in_its_own_choice():
    from suite_scores import regret

    scores = {"a": {"x": 0.2, "y": 0.3}, "b": {"x": 0.3, "y": 0.2}}
    assert [(row["choice"], row["best"]) for row in regret(scores)] == [("x", "y"), ("y", "x")]


def test_gains_are_counted_from_the_base_variant():
    from suite_scores import per_variant

    scores = {"a": {"x": 0.5, "y": 0.6}, "b": {"x": 0.5, "y": 0.48}}
    (base, other) = per_variant(scores, "x")
    assert base["gain"] == base["worst"] == base["best"] == 0
    assert (other["gain"], other["worst"], other["best"]) == pytest.approx((4, -2, 10))
    assert (other["worst_set"], other["worst_regret"]) == ("b", pytest.approx(2))


def test_means_take_only_cells_that_every_method_has():
    from suite_scores import mean_scores

    lines = [line("a", "hbmp", 0.5, 0.7, seed=seed) for seed in (0, 1)] + [line("a", "itq", 0.4, 0.4)]
    lines[1]["own"] = 0.9
    assert mean_scores(lines, "score")["a"] == pytest.approx({"hbmp": 0.6, "itq": 0.4})
    assert mean_scores([*lines, {**lines[2], "name": "lsh", "failed": "ValueError"}], "own")["a"].keys() == {
        "hbmp",
        "itq",
    }


def test_rank_and_margin_are_against_the_best_other_method():
    from suite_scores import ranks

    (row,) = ranks({"a": {"itq": 0.2, "csq": 0.62, "hbmp": 0.6, "lsh": 0.1}})
    assert (row["rank"], row["of"], row["best"]) == (2, 4, "csq")
    assert row["margin"] == pytest.approx(-2)


def test_the_summary_counts_first_places_of_cells_with_every_seed():
    from suite_scores import summary, with_seeds

    scores = {"a": (0.6, 0.5), "b": (0.5, 0.502), "c": (0.5, 0.55)}
    lines = [
        line(held, name, own, own)
        for held, found in scores.items()
        for name, own in zip(("hbmp", "csq"), found, strict=True)
    ]
    lines += [line("a", "sdr", 0.9, 0.9, seed=1), *({**one, "seed": 1} for one in lines)]
    kept = with_seeds(lines, (0, 1))
    assert {one["name"] for one in kept} == {"hbmp", "csq"}
    found = summary(kept, "own", 16)
    assert (found["sets"], found["first"], found["near"], found["worst_set"]) == (3, 1, 2, "c")
    assert (found["mean"], found["worst"]) == pytest.approx(((10 - 0.2 - 5) / 3, -5))
    assert summary(kept, "own", 32) is None


def test_an_idea_is_measured_where_it_is_in_use():
    from suite_page import ablation_table

    lines = [line(held, name, own, own) for held in "ab" for name, own in (("default", 0.6), ("no intercept", 0.5))]
    lines = [{**one, "new_own": one["own"]} for one in lines]
    assert "| free constant | multi-label | 16 | 1 | +10.0 | +10.0 | b |" in ablation_table(lines, {"b"})
    assert "free constant" not in ablation_table(lines, set())


def test_methods_are_ranked_over_the_sets_that_they_have():
    from suite_tables import method_table

    scores = {"a": {"itq": 0.2, "csq": 0.6, "hbmp": 0.5}, "b": {"itq": 0.3, "hbmp": 0.4}}
    lines = [line(held, name, own, own) for held, found in scores.items() for name, own in found.items()]
    rows = [row.split(" | ") for row in method_table(lines, "own", 16).splitlines()[2:]]
    assert [row[0].strip("| ") for row in rows] == ["csq", "hbmp", "itq"]
    assert rows[1][1:6] == ["2", "1.5", "1", "5.0", "10.0"]
    assert [row[-1].strip(" |") for row in rows] == ["-10.0", "—", "+20.0"]


def test_a_set_without_every_variant_takes_no_part_in_regret():
    from suite_scores import complete

    assert list(complete({"a": {"x": 1, "y": 1}, "b": {"x": 1}})) == ["a"]


def test_validation_splits_the_training_rows_alone(folder):
    from suite_cells import Rows

    rows = Rows.load(folder / "classes.npz")
    first, again, other = (rows.validation(seed) for seed in (0, 0, 1))
    parts = [first.train, first.new, first.query]
    assert sorted(np.concatenate(parts)) == sorted(rows.train)
    assert min(map(len, parts)) > 0
    assert (first.query == again.query).all()
    assert set(first.query) != set(other.query)


def test_prepared_parts_are_disjoint_and_hold_the_rows_that_were_drawn(tmp_path):
    from suite_data import draw_per_class, facts

    X, y = np.arange(60, dtype=float)[:, None], np.repeat([0, 1, 2], 20)
    draw_per_class(y, ([8, 4, 2], 5, 3), X).save(tmp_path / "made.npz", "Made.")
    found = np.load(tmp_path / "made.npz")
    assert sorted(np.concatenate([found["train"], found["new"], found["query"]])) == list(range(38))
    assert len(np.unique(found["features"])) == 38
    assert (found["labels"] == found["features"][:, 0] // 20).all()
    size = facts(tmp_path / "made.npz")
    assert (size["fewest"], size["most"], size["labels"], size["query"]) == (2, 8, 3, 9)


def test_official_parts_stay_apart():
    from suite_data import draw

    pools = np.arange(0, 50), np.arange(50, 100)
    drawn = draw(np.zeros(100, int), (30, 20, 10), np.zeros((100, 1)), pools)
    assert set(drawn.train) <= set(pools[0])
    assert set(drawn.new) | set(drawn.query) <= set(pools[1])
    assert not set(drawn.new) & set(drawn.query)


def test_an_interrupted_run_goes_on_and_reports(folder, tmp_path, command):
    output = tmp_path / "lines.jsonl"
    words = ["run", folder, "--methods", "sdh", "lsh", "--bits", 8, "--output", output]
    assert command(*words, "--seconds", 0) == ""
    first = command(*words)
    assert first.count("\n") == 4
    whole = output.read_text().splitlines()
    output.write_text("\n".join(whole[:3]) + "\n" + whole[3][:40])  # the process was killed while it wrote
    again = command(*words)
    missing = json.loads(whole[3])
    assert again.startswith(f"1/1 {missing['key']} ")
    lines = {one["key"]: one for one in map(json.loads, output.read_text().splitlines())}
    assert lines.keys() == {json.loads(one)["key"] for one in whole}
    for name in ("own", "real", "new_own", "new_real"):
        assert lines[missing["key"]][name] == missing[name]
        assert 0 < missing[name] <= 1
    assert "No set has both hbmp and another method." in command("report", output)


def test_variants_of_a_method_are_measured_by_name(folder, tmp_path, command):
    settings, output = tmp_path / "settings.json", tmp_path / "lines.jsonl"
    settings.write_text(json.dumps({"few": {"n_iter": 1}, "more": {"n_iter": 5}}))
    words = ["run", folder, "--validation", "--methods", "itq", "--variants", settings, "--bits", 8, "--output", output]
    command(*words)
    lines = [json.loads(text) for text in output.read_text().splitlines()]
    assert {(one["set"], one["name"], one["settings"]["n_iter"]) for one in lines} == {
        (held, name, n) for held in ("classes", "sets") for name, n in (("few", 1), ("more", 5))
    }
    assert {one["split"] for one in lines} == {"validation"}
    assert "over 2 sets" in command("regret", output)


def test_the_page_is_that_of_the_lines_and_sets():
    import suite_report
    from parallel_cells import read_lines

    files = (suite_report.RESULTS, suite_report.VARIANTS, suite_report.MORE)
    lines, variants, more = (read_lines(path) for path in files)
    expected = suite_report.page(lines, variants, json.loads(suite_report.SETS.read_text()), more)
    assert suite_report.PAGE.read_text() == expected, "run `python benchmarks/suite.py page`"
    readme = suite_report.README.read_text()
    assert suite_report.filled(readme, suite_report.readme_part(lines)) == readme, (
        "run `python benchmarks/suite.py page`"
    )


def test_every_regime_has_a_set():
    facts = json.loads((ROOT / "results" / "suite-sets.json").read_text()).values()
    assert len(facts) >= 14
    assert min(one["labels"] for one in facts) == 2
    assert max(one["labels"] for one in facts) >= 200
    assert min(one["dimensions"] for one in facts) <= 64
    assert max(one["dimensions"] for one in facts) >= 1536
    assert sum(one["multi_label"] for one in facts) >= 3
    assert max(one["train"] for one in facts) <= 5000


def test_the_page_of_detail_bits_shows_the_lines_measured():
    import detail_bits

    lines = detail_bits.read_lines(detail_bits.RESULTS)
    shown = detail_bits.PAGE.read_text().split("<!-- measured: begin -->")[1].split("<!-- measured: end -->")[0]
    assert shown.strip() == detail_bits.measured(lines), "run `python benchmarks/detail_bits.py page`"


def test_the_page_of_detail_bits_shows_what_is_in_reach():
    import detail_bits
    import detail_frontier

    lines, chosen = (detail_bits.read_lines(path) for path in (detail_frontier.RESULTS, detail_bits.RESULTS))
    shown = detail_bits.PAGE.read_text().split("<!-- frontier: begin -->")[1].split("<!-- frontier: end -->")[0]
    content = detail_frontier.content(lines, chosen, 64)
    assert shown.strip() == content, "run `python benchmarks/detail_frontier.py page`"


def test_a_line_of_detail_bits_has_all_three_models(folder):
    import detail_bits

    line = detail_bits.measure(folder / "sets.npz", 8, 0)
    found = detail_bits.averaged([line], 8)["sets"]
    assert all(0 <= found[method]["recall"] <= 1 for method in detail_bits.METHODS)
    assert found["label"]["detail_bits"] == 0
    assert found["unlabelled"]["map"] > 0.4
    assert "| sets |" in detail_bits.measured([line])


def test_measured_cells_of_detail_bits_are_not_measured_again(tmp_path):
    import detail_bits

    sets = [tmp_path / f"{name}.npz" for name in ("large", "small")]
    for path, size in zip(sets, (9, 4), strict=True):
        path.write_bytes(bytes(size))
    output = tmp_path / "lines.jsonl"
    output.write_text('{"set": "small", "bits": 8, "seed": 1}\n{"set": "lar')  # the last line is unfinished
    options = detail_bits.parser().parse_args(
        ["run", str(tmp_path), "--bits", "4", "8", "--seeds", "1", "--output", str(output)]
    )
    large, small = sets
    assert detail_bits.open_cells(options) == [(large, 8, 1), (large, 4, 1), (small, 4, 1)]


def test_what_detail_bits_could_reach_names_the_cheapest():
    import detail_frontier

    reached = {"map": 0.9, "recall": 0.1, "first": 0.2}
    chosen = [{"set": "a", "bits": 8, "seed": 0, **dict.fromkeys(("label", "auto"), reached)}]
    chosen[0]["unlabelled"] = {"map": 0.3, "recall": 0.4, "first": 1.0}
    found = ((0, 4, 0.85, 0.4), (0.2, 4, 0.89, 0.45), (0, 6, 0.5, 0.6))  # weight, number, mAP, recall
    lines = [
        {"set": "a", "bits": 8, "seed": 0, "details": m, "weight": weight, "map": level, "recall": recall, "first": 0.9}
        for weight, m, level, recall in found
    ]
    found = detail_frontier.content(lines, chosen, 8)
    assert found.splitlines()[-1] == "| a | 40.0 | 60.0 | 1.0 (4 of 0.2) | never |"
    assert found.splitlines()[0] == (
        "For at most 0.5 points of mAP, detail bits can reach the recall of bits without labels on 0 of 1 sets, and "
        "99 % of the items can come first on 0. At any price, the recall is out of reach on 0 sets and 99 % on 1."
    )


def test_readings_of_one_fit_are_lines_of_their_own(folder, tmp_path, command):
    from parallel_cells import read_lines
    from suite_readings import READINGS

    output = tmp_path / "lines.jsonl"
    command("run", folder, "--methods", "hbmp", "--bits", 8, "--readings", "--output", output)
    for name, default in (("classes", "votes 0.5"), ("sets", "votes 0.25")):
        found = {line["name"]: line for line in read_lines(output) if line["set"] == name}
        assert list(found) == ["hbmp", *READINGS]
        for same in (default, "weights 0.5", "no dither"):  # what the plan says
            assert [found[same][key] for key in ("own", "real")] == [found["hbmp"][key] for key in ("own", "real")]
