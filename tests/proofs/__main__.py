"""``python tests/proofs``: prove every layout for all shapes, and say what was proved.

With words, only proofs whose names have one of them.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from proofs import about_bits, about_layouts, layouts
from whole import Refuted

PARTS = 16


def proved(number: int, words: list[str]) -> list[tuple[str, str]]:
    """(name, what is wrong) of each proof of a part."""
    named = [(name, layout) for name, layout in layouts() if not words or any(word in name for word in words)]
    proofs = [*about_layouts(named[number::PARTS])] if named[number::PARTS] else []
    if number == 0:
        proofs += [each for each in about_bits() if not words or any(word in each.name for word in words)]
    found = []
    for proof in proofs:
        wrong = ""
        try:
            proof.prove()
        except Refuted as problem:
            wrong = str(problem)
        found.append((proof.name, wrong))
    return found


def main(words: list[str]) -> int:
    begin = time.perf_counter()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as processes:
        results = [each for part in processes.map(proved, range(PARTS), [words] * PARTS) for each in part]
    wrong = [(name, problem) for name, problem in results if problem]
    for name, problem in wrong:
        print(f"NOT PROVED  {name}: {problem}")
    print(f"{len(results) - len(wrong)} of {len(results)} proved in {time.perf_counter() - begin:.0f} s")
    return 1 if wrong or not results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
