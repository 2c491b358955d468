"""Detections, mAP, mIoU, PSNR and SSIM by hand and by plain loops, and what is right read from hostile files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from support import commands
from support.detectors import PIXELS, detector, samples
from support.graphs import Graph, Op, build
from support.single_op import T
from tflq.comparison.inspection.layout import layout_of
from tflq.errors import FileAccessError, InputError
from tflq.model.flatbuf import write
from tflq.model.ir import view
from tflq.quantization.anchors import reading_of
from tflq.quantization.frontier import Runner
from tflq.quantization.judge.detections import (
    FoundBoxes,
    Likeness,
    Matches,
    Objects,
    Overlap,
    found_in,
    mean_precision,
    similarity,
    suppress,
)
from tflq.quantization.judge.outputs import Frame, process, read_truths
from tflq.verbs.compare import compare

RNG = np.random.default_rng(5)


def objects(*rows: tuple[float, float, float, float, int]) -> Objects:
    table = np.array(rows, np.float64).reshape(-1, 5)
    return Objects(table[:, :4].T, table[:, 4].astype(np.int64))


def found(*rows: tuple[float, float, float, float, float, int]) -> FoundBoxes:
    table = np.array(rows, np.float64).reshape(-1, 6)
    return FoundBoxes(table[:, :4].T, table[:, 4], table[:, 5].astype(np.int64))


def test_suppression_keeps_the_best_of_each_class() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 9.9], [50, 50, 60, 60]], np.float64).T
    scores = np.array([[0.6, 0.9, 0.005], [0.3, 0.0, 0.2]])
    kept = suppress(boxes, scores)
    assert kept.scores.tolist() == [0.9, 0.3, 0.2]
    assert kept.classes.tolist() == [0, 1, 1]
    assert suppress(np.full((4, 3), np.nan), scores).scores.tolist() == []
    assert suppress(np.zeros((4, 0)), np.zeros((2, 0))).scores.tolist() == []


def test_precision_by_hand() -> None:
    """Two objects; the better detection is right up to an overlap of 0.8, the next wrong, the last right up to 1."""
    right = [objects((0, 0, 10, 10, 0), (20, 20, 30, 30, 0))]
    given = [found((0, 0, 10, 8.2, 0.9, 0), (70, 70, 80, 80, 0.8, 0), (20, 20, 30, 30, 0.7, 0))]
    half = (51 * 1.0 + 50 * 2 / 3) / 101  # recall 0.5 with precision 1, then 1 with 2 of 3
    last = 51 * (1 / 3) / 101  # only the last is right: recall 0.5 with precision 1 of 3
    assert mean_precision(given, right) == pytest.approx((half, (7 * half + 3 * last) / 10))
    assert mean_precision([found()], [objects((0, 0, 1, 1, 2))]) == (0.0, 0.0)
    assert all(math.isnan(value) for value in mean_precision([found()], [objects()]))


def test_matches_are_one_to_one_within_a_class() -> None:
    matches = Matches()
    ours = found((0, 0, 10, 10, 0.9, 0), (20, 20, 30, 30, 0.8, 1), (40, 40, 50, 50, 0.1, 1))
    matches.add(ours, found((0, 0, 10, 9, 0.9, 0), (0, 0, 10, 8, 0.9, 0), (20, 20, 30, 30, 0.9, 0)))
    assert (matches.given, matches.found, matches.extra) == (2, 1, 2)
    assert matches.overlap == pytest.approx(0.9)
    assert math.isnan(Matches().rate)


def test_masks_and_pictures_by_hand() -> None:
    overlap = Overlap()
    overlap.add(np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 255]]), 3)
    assert overlap.mean == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert math.isnan(Overlap().mean)
    likeness = Likeness()
    picture = RNG.random((12, 12, 3))
    likeness.add(picture, picture)
    assert (likeness.psnr, likeness.ssim) == (math.inf, pytest.approx(1.0))
    likeness.add(np.full((12, 12, 3), np.nan), np.full((12, 12, 3), 0.1))
    assert likeness.psnr == pytest.approx(-10 * math.log10(0.01 / 2))


def test_structural_similarity_by_plain_loops() -> None:
    first, second = RNG.random((13, 14, 2)), RNG.random((13, 14, 2))
    window = np.exp(-np.square(np.arange(-5, 6)) / 4.5)
    window = np.outer(window, window) / np.outer(window, window).sum()
    total = []
    for c in range(2):
        for y in range(3):
            for x in range(4):
                a, b = (p[y : y + 11, x : x + 11, c] for p in (first, second))
                ma, mb = (window * a).sum(), (window * b).sum()
                va, vb = (window * a * a).sum() - ma**2, (window * b * b).sum() - mb**2
                vab = (window * a * b).sum() - ma * mb
                total.append((2 * ma * mb + 1e-4) * (2 * vab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))
    assert similarity(first, second) == pytest.approx(np.mean(total))
    assert similarity(first[:1, :1], first[:1, :1]) == pytest.approx(1.0)


# --- files


def coco(**changes: Any) -> dict[str, Any]:
    document = {
        "images": [
            {"id": 7, "file_name": "b.png", "width": 200, "height": 100},
            {"id": 3, "file_name": "a.png", "width": 100, "height": 100},
        ],
        "categories": [{"id": 9, "name": "two"}, {"id": 4, "name": "one"}],
        "annotations": [
            {"image_id": 7, "category_id": 9, "bbox": [20, 10, 40, 50]},
            {"image_id": 7, "category_id": 4, "bbox": [0, 0, 1, 1], "iscrowd": 1},
        ],
    }
    return {**document, **changes}


def test_coco_documents(tmp_path: Path) -> None:
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(coco()))
    first, second = read_truths(path, (64, 64))
    assert isinstance(first, Objects)
    assert first.boxes.T.tolist() == [[0.1, 0.1, 0.3, 0.6]]
    assert first.classes.tolist() == [1]
    assert isinstance(second, Objects)
    assert second.boxes.shape == (4, 0)
    frames = [Frame("a", (100, 100), (0, 0, 100, 100)), Frame("b", (200, 100), (50, 0, 150, 100))]
    _, cut = read_truths(path, (64, 64), frames)
    assert isinstance(cut, Objects)
    assert cut.boxes.T.tolist() == [[0.0, 0.1, pytest.approx(0.1), 0.6]] or cut.boxes.shape == (4, 0)
    with pytest.raises(InputError, match="no picture of that name"):
        read_truths(path, (64, 64), [Frame("c", (1, 1), (0, 0, 1, 1))])


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        3,
        coco(images=3),
        coco(categories=[{"id": "x"}]),
        coco(annotations=[{"image_id": 7, "category_id": 9, "bbox": [1, 2]}]),
        coco(annotations=[{"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4]}]),
        coco(annotations=[{"image_id": [], "category_id": 9, "bbox": [1, 2, 3, 4]}]),
        coco(annotations=[{"image_id": 7, "category_id": 9, "bbox": [1, 2, float("nan"), 4]}]),
        coco(images=[{"id": 7, "file_name": "b", "width": 0, "height": 1}]),
        coco(images=[{"id": 7}]),
    ],
)
def test_other_documents_are_refused(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError):
        read_truths(path, (64, 64))


def test_deep_and_broken_documents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("[" * 100_000, "{", "", "\x00"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_truths(path, (64, 64))
    with pytest.raises(FileAccessError):
        read_truths(tmp_path / "none.json", (64, 64))


def test_yolo_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 0.5 0.5 0.2 0.4\n\n0 0.1 0.1 0.2 0.2 0.9\n")
    (tmp_path / "b.txt").write_text("")
    (tmp_path / "classes.txt").write_text("cat\n")
    first, second = read_truths(tmp_path, (64, 64))
    assert isinstance(first, Objects)
    assert isinstance(second, Objects)
    assert first.boxes.T.tolist() == [pytest.approx([0.4, 0.3, 0.6, 0.7]), pytest.approx([0, 0, 0.2, 0.2])]
    assert first.classes.tolist() == [1, 0]
    assert second.classes.size == 0
    frames = [Frame(name, (10, 10), (0, 0, 10, 10)) for name in ("c", "a")]
    assert [len(o.classes) for o in read_truths(tmp_path, (64, 64), frames) if isinstance(o, Objects)] == [0, 2]
    with pytest.raises(InputError, match="name of a picture"):
        read_truths(tmp_path, (64, 64), frames[:1])


@pytest.mark.parametrize("text", ["cat 0 0 1 1", "1 2 3", "1 nan 0 1 1", "-1 0 0 1 1", "0.5 0 0 1 1", "1 inf 1 1 1"])
def test_other_texts_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError):
        read_truths(tmp_path, (64, 64))


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.txt"):
        read_truths(tmp_path, (64, 64))


def test_stacked_boxes(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    boxes, classes = np.array([[[0, 0, 32, 64], [0, 0, 0, 0]]], np.float32), np.array([[2, 0]], np.uint8)
    np.savez(path, boxes=boxes, classes=classes, valid=np.array([[True, False]]))
    (only,) = read_truths(path, (64, 128))
    assert isinstance(only, Objects)
    assert only.boxes.T.tolist() == [[0, 0, 0.5, 0.5]]
    for wrong in (
        {"boxes": boxes},
        {"boxes": boxes[0], "classes": classes},
        {"boxes": boxes * np.nan, "classes": classes},
    ):
        np.savez(path, **wrong)
        with pytest.raises(InputError):
            read_truths(path, (64, 128))


# --- compare


def truth_of(model: tflq.Model, pictures: Any) -> list[Objects]:
    """Return the model's own detections as shares of a picture of PIXELS."""
    layout = layout_of(view(model))
    runs = Runner(model, layout.tensors).each([{0: picture[None]} for picture in pictures])
    rows = [[run[t].astype(np.float64).reshape(-1) for t in layout.tensors] for run in runs]
    reading = reading_of(layout, rows)
    detections = [found_in(reading, row).read() for row in rows]
    return [Objects(d.boxes / PIXELS, d.classes) for d in detections]


@pytest.mark.parametrize("form", ["joint", "last", "apart", "corners", "scores-first", "v5", "logits"])
def test_a_model_finds_its_own_detections(form: str) -> None:
    model, pictures = detector(form), samples(20)
    same = compare(model, model, pictures, truth_of(model, pictures))
    precision = {metric.name: (metric.reference, metric.other) for metric in same.figures.metrics}
    assert precision["mAP50"] == (pytest.approx(1.0), pytest.approx(1.0))
    matches = same.figures.matches
    assert matches is not None
    assert matches.given == matches.found > 10
    assert (matches.extra, matches.overlap) == (0, pytest.approx(matches.given))


def test_a_lost_part_is_named_and_costs_all_detections(tmp_path: Path) -> None:
    model, pictures = detector("joint"), samples(12)
    lost = tflq.quantize(model, pictures, tflq.Recipe(float_tail="none")).model
    kept = tflq.quantize(model, pictures, tflq.Recipe()).model
    truth = truth_of(model, pictures)
    values = {}
    for name, other in (("lost", lost), ("kept", kept)):
        (tmp_path / f"{name}.tflite").write_bytes(write(other))
        values[name] = compare(model, other, pictures, truth).figures
    assert values["lost"].metrics[0].other < 0.3
    assert values["kept"].metrics[0].other > 0.9
    assert next(iter(values["lost"].ratios)) == "scores"
    (tmp_path / "float.tflite").write_bytes(write(model))
    np.save(tmp_path / "x.npy", pictures)
    boxes, classes = np.zeros((12, 40, 4), np.float32), np.zeros((12, 40), np.int64)
    valid = np.zeros((12, 40), bool)
    for k, one in enumerate(truth):
        n = len(one.classes)
        boxes[k, :n], classes[k, :n], valid[k, :n] = one.boxes.T, one.classes, True
    np.savez(tmp_path / "y.npz", boxes=boxes, classes=classes, valid=valid)
    words = ["compare", str(tmp_path / "float.tflite"), "--inputs", str(tmp_path / "x.npy")]
    for name, wanted in (("lost", "part "), ("kept", "mAP50 1.0000 before")):
        asked = [*words, str(tmp_path / f"{name}.tflite"), "--labels", str(tmp_path / "y.npz")]
        done = commands.tflq(*asked)
        assert done.exit_code == 0, done.output
        assert wanted in done.output.splitlines()[0]
        document = json.loads(commands.tflq(*asked, "--json").stdout)
        figures = document["comparison"]["figures"]
        assert [metric["name"] for metric in figures["metrics"]] == ["mAP50", "mAP50-95"]
    done = commands.tflq(*words, tmp_path / "kept.tflite")
    assert "are found again" in done.output
    assert "boxes off by" in done.output.splitlines()[0]


def test_labels_that_do_not_fit_are_refused() -> None:
    model, pictures = detector("joint"), samples(4)
    with pytest.raises(InputError, match="number of labels"):
        compare(model, model, pictures, truth_of(model, pictures)[:2])
    plain = tflq.load(build(Graph([T("float32", (1, 4)), T("float32", (1, 4))], (0,), (1,), [Op("ABS", (0,), (1,))])))
    rows = np.float32(RNG.random((3, 4)))
    with pytest.raises(InputError, match="hold none that can be read"):
        compare(plain, plain, rows, [objects((0, 0, 1, 1, 0))] * 3)
    with pytest.raises(InputError, match="masks do not fit"):
        compare(plain, plain, rows, list(np.zeros((3, 5, 5), np.uint8)))
    with pytest.raises(InputError, match="pictures do not fit"):
        compare(plain, plain, rows, list(np.zeros((3, 5, 5, 3), np.uint8)))
    with pytest.raises(InputError, match="no classes"):
        compare(plain, plain, rows, list(np.full((3, 1, 4), 10**9)))


def test_masks_are_compared_with_the_greatest_channel() -> None:
    shape = (1, 3, 5, 4)
    plain = tflq.load(build(Graph([T("float32", shape), T("float32", shape)], (0,), (1,), [Op("ABS", (0,), (1,))])))
    rows = np.float32(RNG.random((6, *shape[1:])))
    figures = compare(plain, plain, rows, list(rows.argmax(axis=-1).astype(np.uint8))).figures
    assert [(m.name, m.reference, m.other) for m in figures.metrics] == [("mIoU", 1.0, 1.0)]
    figures = compare(plain, plain, rows[..., :4], list(rows)).figures
    assert [m.name for m in figures.metrics] == ["PSNR", "SSIM"]


def test_evaluation_samples_judge_the_result() -> None:
    model = detector("joint")
    other = samples(10, seed=1)
    result = tflq.quantize(model, samples(), tflq.Recipe(), labels=truth_of(model, other), evaluation=other)
    assert result.report.held_back == result.report.comparison.samples == 10
    assert result.report.comparison.figures.metrics[0].other > 0.9


def test_pictures_of_a_folder_are_matched_by_name(tmp_path: Path) -> None:
    """Pictures twice as wide as high: the model sees the middle, and boxes move with it."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    model, pictures = detector("joint"), samples(6)
    truth = truth_of(model, np.floor(pictures * 100).astype(np.float32) / 100)
    folder, texts = tmp_path / "photos", tmp_path / "labels"
    folder.mkdir()
    texts.mkdir()
    document: dict[str, Any] = {"images": [], "categories": [{"id": k + 1} for k in range(3)], "annotations": []}
    for k, (picture, right) in enumerate(zip(pictures, truth, strict=True)):
        wide = np.zeros((8, 16, 3), np.uint8)
        wide[:, 4:12] = np.floor(picture * 100).astype(np.uint8)
        image.fromarray(wide).save(folder / f"p{k}.png")
        lines = []
        document["images"].insert(0, {"id": k, "file_name": f"p{k}.png", "width": 16, "height": 8})
        for (left, top, right_, bottom), kind in zip(right.boxes.T.tolist(), right.classes.tolist(), strict=True):
            x, w = (left + right_) / 4 + 0.25, (right_ - left) / 2
            lines.append(f"{kind} {x} {(top + bottom) / 2} {w} {bottom - top}")
            box = [16 * (left / 2 + 0.25), 8 * top, 16 * w, 8 * (bottom - top)]
            document["annotations"].append({"image_id": k, "category_id": kind + 1, "bbox": box})
        if lines:
            (texts / f"p{k}.txt").write_text("\n".join(lines))
    (tmp_path / "instances.json").write_text(json.dumps(document))
    (tmp_path / "float.tflite").write_bytes(write(model))
    words = ["compare", *[str(tmp_path / "float.tflite")] * 2, "--inputs", str(folder), "--std", "100", "--json"]
    for labels in (texts, tmp_path / "instances.json"):
        done = commands.tflq(*words, "--labels", labels)
        assert done.exit_code == 0, done.output
        (precision, _) = json.loads(done.stdout)["comparison"]["figures"]["metrics"]
        assert precision["reference"] > 0.9


def test_post_processed_detections_are_read_as_they_are() -> None:
    """Boxes y, x, y, x in shares, classes and scores; unused places have scores of 0."""
    boxes = np.array([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.9, 0.8], [0, 0, 0, 0], [np.nan, 0, 0, 0]]])
    given = process([boxes, np.array([[1.0, 0, 0, 0]]), np.array([[0.4, 0.7, 0.0, 0.9]])], (0, 1, 2))
    assert given.boxes.T.tolist() == [[0.5, 0.5, 0.8, 0.9], [0.2, 0.1, 0.4, 0.3]]
    assert given.scores.tolist() == [0.7, 0.4]
    assert given.classes.tolist() == [0, 1]
