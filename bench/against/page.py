"""The page of the results of `against.py`."""

import math
import statistics
from typing import Optional

OURS = "sparsegp"
# of a kind: the score that ranks, then the others; the lower the better but for coverage
SCORES = {
    "regression": ["nlpd", "rmse", "crps", "coverage", "width", "seconds"],
    "classification": ["log_loss", "error", "ece", "seconds"],
    "counts": ["nlpd", "crps", "rmse", "coverage", "width", "seconds"],
}
TITLES = {
    "nlpd": "mean negative log density (NLPD)",
    "rmse": "RMSE",
    "crps": "CRPS",
    "coverage": "share of test rows in the 90 % intervals",
    "width": "mean width of the 90 % intervals",
    "seconds": "seconds of one processor to train",
    "log_loss": "log loss",
    "error": "share of wrong classes",
    "ece": "expected calibration error",
}
HEADINGS = {"regression": "Numbers", "classification": "Classes", "counts": "Counts"}
NEAREST = {"coverage": 0.9}
UNRANKED = ("width",)

INTRO = """# Defaults against what else there is

sparsegp by its defaults beside what users take instead, all by their defaults on one thread, on tables of the usual kinds. Rows that
we lose are left in. `python bench/against.py` runs it (its `--help` says how everything is measured), and
`python bench/against.py --page` writes this page. Numbers are means over the splits, with standard errors for the first score;
the best of a row is in bold, `–` means that a peer has no such score or did not finish. Targets of regressions are in standard
deviations of the training rows.
"""


def number(value):
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"


def distance(score, value):
    """How far a score is from the best that there can be; the lower the better."""
    return abs(value - NEAREST[score]) if score in NEAREST else value


class Cells:
    """The results of one kind, by table and peer."""

    def __init__(self, results, kind):
        own = [result for result in results if result["kind"] == kind]
        self.tables = list(dict.fromkeys(result["table"] for result in own))
        self.peers = list(dict.fromkeys(result["peer"] for result in own))
        self.of = {}
        for result in own:
            self.of.setdefault((result["table"], result["peer"]), []).append(result)

    def values(self, table, peer, score) -> Optional[list]:
        """The score in all splits; none where one of them has none."""
        results = self.of.get((table, peer), [])
        splits = {own["split"] for peer in self.peers for own in self.of.get((table, peer), [])}
        values = [result[score] for result in results if math.isfinite(result.get(score, math.nan))]
        return values if values and len(values) == len(splits) else None

    def means(self, table, score):
        """Mean scores of the peers that have them."""
        found = {peer: self.values(table, peer, score) for peer in self.peers}
        return {peer: statistics.mean(values) for peer, values in found.items() if values}


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * len(rows[0])) + " |", *lines[1:]]) + "\n"


def score_table(cells, score, with_errors):
    """A table of one score."""
    rows = [["table", *cells.peers]]
    for table in cells.tables:
        means = cells.means(table, score)
        best = min((distance(score, value) for value in means.values()), default=None)
        row = [table]
        for peer in cells.peers:
            if peer not in means:
                row.append("–")
                continue
            text = number(means[peer])
            values = cells.values(table, peer, score)
            if with_errors and len(values) > 1:
                text += f" ± {number(statistics.stdev(values) / math.sqrt(len(values)))}"
            is_best = score not in UNRANKED and distance(score, means[peer]) == best
            row.append(f"**{text}**" if is_best else text)
        rows.append(row)
    return markdown(rows)


def ranks(cells, score):
    """Mean rank of every peer over the tables, those without the score last; ties share a rank."""
    sums = dict.fromkeys(cells.peers, 0.0)
    for table in cells.tables:
        means = {peer: distance(score, value) for peer, value in cells.means(table, score).items()}
        for peer in cells.peers:
            own = means.get(peer, math.inf)
            others = [means.get(other, math.inf) for other in cells.peers if other != peer]
            sums[peer] += 1 + sum(other < own for other in others) + sum(other == own for other in others) / 2
    return {peer: total / len(cells.tables) for peer, total in sums.items()}


def rank_table(cells, scores):
    """Mean ranks by score."""
    own = {score: ranks(cells, score) for score in scores if score not in UNRANKED}
    rows = [["mean rank", *(score.replace("_", " ") for score in own)]]
    order = sorted(cells.peers, key=lambda peer: own[scores[0]][peer])
    rows += [[peer, *(f"{own[score][peer]:.1f}" for score in own)] for peer in order]
    return markdown(rows)


def verdict(cells, score):
    """Where ours is the best, and where it is not."""
    lost = []
    for table in cells.tables:
        means = cells.means(table, score)
        if OURS not in means:
            lost.append(f"{table} (no result)")
            continue
        others = {peer: value for peer, value in means.items() if not peer.startswith(OURS)}
        best = min(others, key=others.get, default=None)
        if best and others[best] < means[OURS]:
            lost.append(f"{table} ({best}, by {number(means[OURS] - others[best])})")
    won = len(cells.tables) - len(lost)
    said = f"By {TITLES[score]} the default is ahead of all peers on {won} of {len(cells.tables)} tables"
    return said + (f"; behind on {', '.join(lost)}.\n" if lost else ".\n")


def about_tables(cells):
    """Sizes, and test rows whose inputs are those of a training row."""
    rows = [
        [
            "table",
            "training rows",
            "test rows",
            "inputs",
            "splits",
            "test rows with the inputs of a training row",
        ]
    ]
    for table in cells.tables:
        own = next(cells.of[table, peer] for peer in cells.peers if (table, peer) in cells.of)
        repeated = statistics.mean(result["repeated"] for result in own)
        sizes = [str(own[0][key]) for key in ("rows", "test", "inputs")]
        rows.append([table, *sizes, str(len({result["split"] for result in own})), f"{100 * repeated:.0f} %"])
    return markdown(rows)


def failures(results):
    """What peers did not finish."""
    found = {}
    for result in results:
        if "failure" in result:
            found.setdefault((result["peer"], result["failure"]), []).append(
                f"{result['table']} ({result['split']})"
            )
    return "".join(f"- {peer}: {what}, in {', '.join(where)}\n" for (peer, what), where in found.items())


def scale(results):
    """The options by which the results come."""
    rows, splits = max(own["most"] for own in results), 1 + max(own["split"] for own in results)
    return f"These are the results of `python bench/against.py --rows {rows} --splits {splits}`.\n"


def page(stored):
    """The page, in Markdown."""
    results, versions = stored["results"], stored["versions"]
    there = {result["peer"] for result in results}
    rows = [["peer", "package", "what"]]
    for name, (package, about) in stored["peers"].items():
        if name in there:
            rows.append([name, f"{package} {versions[package] or ''}", about])
    parts = [INTRO, markdown(rows), scale(results)]
    if missing := [name for name, (package, _) in stored["peers"].items() if not versions[package]]:
        parts.append(f"Left out, because they did not install: {', '.join(missing)}.\n")
    for kind, scores in SCORES.items():
        cells = Cells(results, kind)
        if not cells.tables:
            continue
        parts.append(f"## {HEADINGS[kind]}\n")
        parts += [verdict(cells, scores[0]), rank_table(cells, scores), about_tables(cells)]
        for score in scores:
            title = TITLES[score]
            parts.append(f"### {HEADINGS[kind]}: {title}\n")
            parts.append(score_table(cells, score, score == scores[0]))
    if lines := failures(results):
        parts.append(f"## Without a result\n\n{lines}")
    return "\n".join(parts)
