"""Predictions over HTTP, by the command line, of a model that was saved here."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.request

import numpy as np
import pytest

from sparsegp import GPRegressor

CLI = os.environ.get("SPARSEGP_CLI")


@pytest.mark.skipif(CLI is None, reason="SPARSEGP_CLI names no program")
def test_a_server_predicts_as_the_estimator(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    colour = rng.choice(["red", "green", "blue"], 90)
    X = pandas.DataFrame({"size": rng.uniform(0, 3, 90), "colour": colour})
    model = GPRegressor(max_iter=30).fit(X, np.sin(2 * X["size"]) + (colour == "red"))
    model.save(tmp_path / "m.safetensors")
    command = [CLI, "serve", str(tmp_path / "m.safetensors"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline()).group()
            new = X.iloc[:20]
            body = json.dumps({"rows": new.to_dict("records")}).encode()
            with urllib.request.urlopen(f"{address}/predict", data=body, timeout=30) as answer:
                found = json.load(answer)["predictions"]
            mean, sd = model.predict(new, return_std=True)
            np.testing.assert_allclose([row["mean"] for row in found], mean, rtol=1e-12)
            np.testing.assert_allclose([row["sd"] for row in found], sd, rtol=1e-12)
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(f"{address}/predict", data=b'{"rows": [{"size": 1}]}', timeout=30)
            assert error.value.code == 400
            assert "row 1: column `colour` is missing" in json.load(error.value)["error"]
        finally:
            server.terminate()
    assert server.returncode == 0
