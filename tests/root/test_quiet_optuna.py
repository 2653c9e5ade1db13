"""Optuna's log level belongs to the program: it is another one only while this project calls Optuna."""

import threading

import optuna

from autotune.processes import quiet_optuna


def test_the_programs_level_comes_back_when_the_last_block_ends() -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    try:
        entered, leave = threading.Event(), threading.Event()

        def other() -> None:
            with quiet_optuna():
                entered.set()
                leave.wait(300)

        thread = threading.Thread(target=other)
        with quiet_optuna():
            thread.start()
            entered.wait(300)
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR  # the other one still needs it
        leave.set()
        thread.join()
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.set_verbosity(before)
