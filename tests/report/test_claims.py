"""What the report says of the papers' tables and claims."""

import pytest

from one_layer.report import claims, naming
from one_layer.report.figures import comparisons, draw
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import all_points, examples, table_1
from tests.report.made_runs import KEEPS, found, write_run, write_scored, write_seeds

PRETRAINED = {"model.embedding_path": "runs/dense", "model.embedding_source": "run"}


def judged(folder):
    """(claim with its models, verdict) of all that the runs say."""
    return [(each.text, each.verdict.value) for each in claims.judged(found(folder))]


def test_the_papers_numbers_stand_beside_ours(runs):
    every = points(read_runs(str(runs)))
    rows = {row[0].split(" (")[0]: row for row in table_1({every[0].bench: every}).rows}
    theirs, *_, ours = rows["fully weighted"][1:]
    assert theirs == "34.66 ± 0.11" and ours.startswith("97.20 ± 0.10 (3 runs): dense 128")
    ours = rows["one random layer, pre-trained embeddings"][-1]
    assert ours.startswith("93.00 ± 0.40 (3 runs): masks 128 pre-trained embeddings")
    assert rows["the same, twice as deep"][-1] == "missing"
    assert "90.00" in rows["one random layer, random embeddings"][-1]


def test_layer_strings_and_numbers_of_layers_are_compared_by_depth(tmp_path):
    models = [
        ({}, 10.0),
        ({"model.weights": "dense", "model.encoder_layers": "LL", "model.decoder_layers": "LL"}, 20.0),
        ({**PRETRAINED, "model.encoder_layers": "SS"}, 30.0),
        ({**PRETRAINED, "model.d_model": 256, "model.decoder_layers": "2S+0R"}, 40.0),
        ({**PRETRAINED, "model.encoder_layers": "SSSS", "model.decoder_layers": "SSSS"}, 50.0),
    ]
    every = write_scored(tmp_path, models)
    scores = [row[-1].split()[0] for row in table_1({every[0].bench: every}).rows]
    assert scores == ["20.00", "10.00", "30.00", "40.00", "50.00"]


def test_claims_follow_the_points(runs, tmp_path):
    verdicts = {each.claim: each.verdict.value for each in claims.judged(points(read_runs(str(runs))))}
    assert verdicts["one layer about equals L layers"] == verdicts["pre-trained embeddings help"] == "holds"
    assert verdicts["masks are best around keep 0.5, worst near 0 and 1"] == "holds"
    for keep, one, other in ((0.1, 20.0, 30.0), (0.5, 35.0, 30.0), (0.9, 50.0, 30.0)):
        write_seeds(tmp_path / f"a{keep}", {"model.keep": keep}, one)
        many = {"model.keep": keep, "model.weights": "multi_layer", "model.sharing": "none"}
        write_seeds(tmp_path / f"b{keep}", many, other)
    _, best, equal = claims.judged(found(tmp_path))
    assert equal.text == "one layer about equals L layers: masks and masks on L layers"
    assert equal.verdict.value == "does not hold" and equal.seen.endswith("not at keep 0.1, 0.5, 0.9")
    assert best.text == "masks are best around keep 0.5, worst near 0 and 1: masks"
    assert best.verdict.value == "does not hold"


def test_of_two_nlls_the_smaller_one_is_better(tmp_path):
    def write(changes, nll):
        line = {"source": "a", "reference": "b", "hypothesis": str(nll)}
        write_seeds(tmp_path / str(nll), changes, 0.0, test={"test": {"nll": nll}}, examples={"test": [line]})

    pretrained, many = {"model.embedding_path": "runs/dense"}, {"model.weights": "multi_layer", "model.sharing": "none"}
    for keep, nll in ((0.1, 2.0), (0.5, 1.5), (0.9, 1.9)):
        for changes, more in ((pretrained, 0.0), ({}, 0.05), (many, 0.06)):
            write({**changes, "model.keep": keep}, nll + more)
    for nll in (1.2, 3.0):
        write({"model.weights": "dense", "optim.lr": nll}, nll)
    every = found(tmp_path)
    bench = every[0].bench
    (table, _) = claims.tables({bench: every})
    seen = {row[1].removesuffix(" random embeddings"): row[2:] for row in table.rows}
    best = "masks are best around keep 0.5, worst near 0 and 1: masks"
    assert seen[best] == ["holds", "best at 0.5 (1.55), worst at 0.1 (2.05)"]
    assert seen["pre-trained embeddings help: masks pre-trained embeddings and masks"][0] == "holds"
    assert sorted(examples(every).rows[0][2:]) == ["1.2", "1.5", "1.56"]
    table = all_points(bench, every)
    assert {row[table.columns.index("of the best dense")] for row in table.rows} == {""}


@pytest.mark.parametrize(
    ("task", "measure", "verdicts"),
    [
        ("translation", "bleu_tokenized", ["holds", "does not hold"]),
        ("classification", "accuracy", ["does not hold", "holds"]),
        ("causal_lm", "nll", []),
        ("masked_lm", "accuracy", []),
    ],
)
def test_each_task_is_judged_by_what_paper_a_says_of_it(tmp_path, task, measure, verdicts):
    """Of two models, one is best at keep 0.5 and the other at 0.7."""
    for rate, best in ((0.1, 0.5), (0.2, 0.7)):
        for keep in KEEPS:
            values = {"test": {measure: (100 if measure.startswith("bleu") else 1) * (0.9 - abs(keep - best))}}
            changes = {"task": task, "model.keep": keep, "optim.lr": rate}
            write_seeds(tmp_path / f"{best},{keep}", changes, 0.0, test=values)
    assert [verdict for _, verdict in judged(tmp_path)] == verdicts


def test_claims_about_several_families_of_models_say_which(tmp_path):
    """With one scheme one layer equals L layers, with the other it does not; and a search or a rate may be all that differs."""
    for scheme, lost in (("signed_constant", 30.0), ("xavier_uniform", 0.0)):
        for rate in (0.1, 0.2) if lost else (0.1,):
            for weights in ("one_layer", "multi_layer"):
                changes = {"model.init_scheme": scheme, "model.weights": weights, "optim.lr": rate}
                score = 90.0 - lost * (weights == "one_layer")
                write_seeds(tmp_path / f"{scheme},{rate},{weights}", changes, score)
    claimed = [(claim, verdict) for claim, verdict in judged(tmp_path) if claim.startswith("one layer about")]
    assert sorted(claimed) == [
        ("one layer about equals L layers: masks and masks on L layers", "does not hold"),
        ("one layer about equals L layers: masks lr 0.2 and masks on L layers lr 0.2", "does not hold"),
        ("one layer about equals L layers: masks xavier uniform and masks on L layers xavier uniform", "holds"),
    ]
    titles = [draw(each, number).title for number, each in enumerate(comparisons(found(tmp_path)))]
    assert len(set(titles)) == len(titles)


def test_controls_and_trained_embeddings_are_in_no_row_of_table_1(tmp_path):
    models = [
        ({}, 10.0),
        ({"optim.freeze": "masks"}, 20.0),
        ({"optim.freeze": "masks,norms"}, 21.0),
        ({"optim.train_only": "embeddings"}, 22.0),
        ({"optim.freeze": "norms, head"}, 11.0),
        ({"model.embedding": "trained"}, 30.0),
        ({**PRETRAINED, "model.embedding": "trained"}, 40.0),
        ({**PRETRAINED, "model.embedding": "frozen"}, 50.0),
    ]
    every = write_scored(tmp_path, models)
    ours = " ".join(row[-1] for row in table_1({every[0].bench: every}).rows)
    assert [value for _, value in models if f"{value:.2f} (1 run)" in ours] == [10.0, 11.0, 50.0]


def test_hybrids_and_models_with_reservoirs_are_what_they_are_called(tmp_path):
    """Neither is in a row of Table 1, drawn as a fully weighted model, or what others are a share of."""
    dense = {"model.weights": "dense", "model.embedding": "trained"}
    models = [
        ({}, "one layer", 80.0),
        ({"model.keep": 0.3}, "one layer", 65.0),
        ({"model.keep": 0.7}, "one layer", 70.0),
        ({"model.encoder_layers": "SS", "model.decoder_layers": 2, "optim.lr": 0.1}, "one layer", 60.0),
        ({"model.encoder_layers": "LS", "model.decoder_layers": "SL"}, "hybrid of one layer and trained layers", 95.0),
        ({"model.encoder_layers": "SRS"}, "one layer with reservoirs", 75.0),
        (dense, "fully weighted", 50.0),
        (dense | {"model.encoder_layers": "LR"}, "trained layers with reservoirs", 90.0),
        (dense | {"model.encoder_layers": "LRR"}, "trained layers with reservoirs", 91.0),
        (dense | {"model.encoder_layers": "LL"}, "fully weighted", 40.0),
    ]
    every = write_scored(tmp_path, ((changes, value) for changes, _, value in models))
    table = all_points(every[0].bench, every)
    assert {point.mean: naming.weights(point.config) for point in every} == {v: name for _, name, v in models}
    assert {row[1]: row[4] for row in table.rows}["90.00"] == "180.0 %"  # of the fully weighted model's 50
    dense_row, one_row, *_ = (row[-1] for row in table_1({every[0].bench: every}).rows)
    assert all(f"{value:.2f} (" in dense_row for value in (40.0, 50.0)) and "90.00" not in dense_row
    assert all(f"{value:.2f} (" in one_row for value in (80.0, 60.0)) and "95.00" not in one_row
    grey = [{point.mean for point in each.dense} for each in comparisons(every)]
    assert grey and all(each <= {40.0, 50.0} for each in grey)


# What the second of two models has above the first at each of three keeps, the deviation of the difference, and the verdict on "it is
# better".
LEADS = [
    ((3.0, 2.0, 4.0), 0.0, "holds"),
    ((3.0, -2.0, 4.0), 0.0, "does not hold"),
    ((-3.0, -2.0, -4.0), 0.0, "does not hold"),
    ((3.0, 0.5, 4.0), 0.0, "undecided"),
    ((3.0, -0.5, 4.0), 0.0, "undecided"),
    ((3.0, 2.0, 4.0), 2.0, "undecided"),
    ((9.0, 8.0, 7.0), 2.0, "holds"),
]
PAIRS = {
    "pre-trained embeddings help": ({}, PRETRAINED),
    "wider is better": ({}, {"model.d_model": 256}),
    "Kaiming uniform is above Xavier uniform": ({"model.init_scheme": "xavier_uniform"}, {}),
}


@pytest.mark.parametrize("claim", PAIRS)
@pytest.mark.parametrize(("leads", "deviation", "verdict"), LEADS)
def test_a_claim_that_one_is_better_needs_a_clear_difference(tmp_path, claim, leads, deviation, verdict):
    for keep, lead in zip((0.3, 0.5, 0.7), leads, strict=True):
        for changes, value, share in zip(PAIRS[claim], (30.0, 30.0 + lead), (5.0, 6.0), strict=True):
            for seed, sign in ((1, -1), (2, 1)):  # two differences at d / √2 from their mean have the deviation d
                each = {**changes, "model.keep": keep, "seed": seed}
                score = value + sign * share * deviation / 2**0.5
                write_run(tmp_path / f"{value},{keep},{seed},{len(changes)}", each, score)
    assert [found for name, found in judged(tmp_path) if name.startswith(claim)] == [verdict]


def test_of_several_models_with_one_name_each_is_judged(tmp_path):
    for keep in (0.3, 0.5):
        for name, changes, value in (
            ("random", {}, 30.0),
            ("one", PRETRAINED, 40.0),
            ("other", {**PRETRAINED, "model.embedding_path": "runs/other"}, 20.0),
        ):
            write_seeds(tmp_path / f"{name}{keep}", {**changes, "model.keep": keep}, value)
    found = [(name, verdict) for name, verdict in judged(tmp_path) if name.startswith("pre-trained")]
    assert sorted(verdict for _, verdict in found) == ["does not hold", "holds"]
    assert len({name for name, _ in found}) == 2


@pytest.mark.parametrize(("lead", "verdict"), [(2.0, "holds"), (0.5, "undecided"), (-2.0, "does not hold")])
def test_depth_is_judged_at_keep_0_5_alone(tmp_path, lead, verdict):
    for keep, more in ((0.3, 5.0), (0.5, lead), (0.7, -9.0)):
        write_seeds(tmp_path / f"flat{keep}", {"model.keep": keep}, 30.0)
        deep = {"model.keep": keep, "model.encoder_layers": 4, "model.decoder_layers": 4}
        write_seeds(tmp_path / f"deep{keep}", deep, 30.0 + more)
    assert [found for name, found in judged(tmp_path) if name.startswith("deeper")] == [verdict]
    other_way = {"model.keep": 0.5, "model.encoder_layers": 5, "model.decoder_layers": 1}  # than none of them deeper
    write_seeds(tmp_path / "other way", other_way, 99.0)
    assert [found for name, found in judged(tmp_path) if name.startswith("deeper")] == [verdict]
    assert not [name for name, _ in judged(tmp_path) if name.startswith("wider")]


def test_without_keeps_near_0_and_1_nothing_is_said_of_them(tmp_path):
    for keep, value in ((0.3, 10.0), (0.5, 20.0), (0.7, 12.0)):
        write_run(tmp_path / f"{keep}", {"model.keep": keep}, value)
    assert [found for _, found in judged(tmp_path)] == ["undecided"]


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ((1, 10, 20, 12, 2), "holds"),
        ((1, 10, 20, 20.5, 2), "undecided"),  # 0.7 is not clearly better than 0.5
        ((1, 10, 20, 19.5, 2), "undecided"),  # nor 0.5 than 0.7
        ((1, 10, 20, 25, 2), "does not hold"),
        ((1, 10, 20, 12, 9.5), "undecided"),  # 0.9 is not clearly worse than all between the ends
        ((1, 10, 20, 12, 19.5), "does not hold"),
        ((15, 5, 20, 12, 2), "does not hold"),  # 0.3 is worse than 0.1
        ((30, 10, 20, 12, 2), "does not hold"),
    ],
)
def test_the_best_keep_is_judged_with_its_ends(tmp_path, scores, verdict):
    for keep, value in zip(KEEPS, scores, strict=True):
        write_seeds(tmp_path / f"{keep}", {"model.keep": keep}, value)
    assert [found for _, found in judged(tmp_path)] == [verdict]


def test_of_keeps_that_are_all_around_the_best_one_nothing_is_said(tmp_path):
    for keep, value in ((0.6, 0.60), (0.7, 0.50), (0.8, 0.60)):
        changes = {"task": "classification", "model.keep": keep}
        write_run(tmp_path / f"{keep}", changes, 0.0, test={"test": {"accuracy": value}})
    assert [found for _, found in judged(tmp_path)] == ["undecided"]


@pytest.mark.parametrize(
    "other",
    [
        {"model.encoder_layers": 4, "model.decoder_layers": 4, "model.ffn": 1024},
        {"model.encoder_layers": "LSSS", "model.decoder_layers": "SSSS"},
        {"model.d_model": 256, "model.encoder_layers": "LS"},
        {"model.d_model": 256, "model.ffn": 64},
    ],
)
def test_a_model_that_differs_in_more_than_depth_or_width_is_not_called_deeper_or_wider(tmp_path, other):
    write_run(tmp_path / "one", {}, 30.0)
    write_run(tmp_path / "other", other, 40.0)
    assert judged(tmp_path) == []
