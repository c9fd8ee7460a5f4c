"""Study files for tests: a good one, variations of it, and some two hundred that are malformed."""

GOOD = """
title = "Good"
arms = 3
rounds = 50
seeds = 4
[strategies.adaptive]
strategy = "scale_free"
[losses.dense]
family = "uniform"
"""


def with_setting(line: str) -> str:
    """GOOD with this line in place of what it sets."""
    key = line.split("=")[0].strip()
    kept = [old for old in GOOD.splitlines() if not old.startswith(f"{key} =")]
    return "\n".join([line, *kept])


def with_strategy(line: str) -> str:
    return GOOD.replace('strategy = "scale_free"', f'strategy = "scale_free"\n{line}')


def with_losses(line: str, family: str = "uniform") -> str:
    return GOOD.replace('family = "uniform"', f'family = "{family}"\n{line}')


SETTINGS = [
    "seeds = 0", "seeds = -1", "seeds = 1.5", 'seeds = "many"', "seeds = true", "seeds = [1, 2]",
    "seeds = 99999999999999999999", "seeds = {}", "seeds = 2020-01-01", "seeds = nan",
    "arms = 0", "arms = -3", "arms = []", "arms = [3, 3]", "arms = [3, 0]", 'arms = ["3"]',
    "arms = 3.0", "arms = [[3]]", "arms = true", "arms = 10000000000", "arms = inf",
    "rounds = 0", "rounds = []", "rounds = 1e4", "rounds = [10, 10]", "rounds = -5",
    "rounds = [10, 0]", 'rounds = "1000"', "rounds = 3000000000", "rounds = 07:32:00",
    "sequences = 0", "sequences = 1.0", "sequences = [1]", "sequences = -2", 'sequences = ""',
    "seed = -1", "seed = 4294967296", 'seed = "0"', "seed = 0.0", "seed = [0]", "seed = false",
    "checkpoints = 0", "checkpoints = []", "checkpoints = [0]", "checkpoints = [1, 1]",
    "checkpoints = -1", "checkpoints = 20000", "checkpoints = [1.5]", 'checkpoints = "all"',
    "checkpoints = true", "checkpoints = [[1]]",
    'dtype = "float16"', "dtype = 32", 'dtype = "flaot32"', 'dtype = ["float32"]', "dtype = {}",
    "pseudo_regret = 1", 'pseudo_regret = "yes"',
    "certificates = 1", 'certificates = "yes"', "certificates = []",
    "title = 5", "title = []", "title = true", 'title = "a\\u0000b"', "question = 1",
    "output = 7", "output = []", "output = true",
    "sedes = 5", "round = 10", "Seeds = 5", "strategy = 1", "family = 1", "scale = 1.0", "n = 3",
    "quick = 5", "quick = []", "quick = { seeds = 0 }", "quick = { seed = 1 }",
    "quick = { rounds = [] }", "quick = { title = 'x' }", "quick = { arms = 'x' }",
    "strategies = 5", "strategies = []", "losses = 5", 'losses = ["uniform"]',
]  # fmt: skip
STRATEGY_LINES = [
    'exploration = "adaptve"', "exploration = 1", "exploration = []",
    'exploration = ["adaptive", 1]',
    "exploration = true", "beta = nan", "beta = inf", 'beta = "1"', "beta = true", "beta = []",
    "beta = [1, 1.0]", "beta = [[1.0]]", "beta = {}", "beta = 2020-01-01", 'beta = "@scal"',
    'beta = "@"', 'beta = "@uniform"', "bata = 1.0", "alpha = 'n'", "alpha = -inf", "num_arms = 3",
    "learning_rate = 0.1", 'strategy = "exp4"', "exploration = { a = 1 }",
    'alpha = ["@scale", "x"]',
    "[strategies.other]", "[strategies.other]\nstrategy = 5", "[strategies.'a|b']",
    "[strategies.'']",
    "[strategies.'$x$']\nstrategy = 'scale_free'", "[strategies]\nx = 5",
    "[[strategies.list]]", "[strategies.é]\nstrategy = 'scale_free'",
]  # fmt: skip
LOSS_LINES = [
    "scale = 0", "scale = 0.0", "scale = -1", "scale = nan", "scale = inf", 'scale = "1"',
    "scale = []", "scale = [1, 1]", "scale = [1, 0]", "scale = [[1]]", "scale = 1e300",
    "scale = 1e-300", "scale = 1e39", "scale = true", "scale = {}", 'scale = "@scale"',
    "gap = 'wide'", "gap = nan", "gap = []", "gpa = 0.2", "num_arms = 3", "rate = 0.1",
    "scale = 1" + "0" * 400, "gap = [0.1, 'x']", 'family = "uniform"', "gap = 1979-05-27T07:32:00Z",
]  # fmt: skip
OTHER_FAMILIES = [
    ("unifrom", ""), ("", ""), ("UNIFORM", ""), ("zeros", ""), ("from_file", ""),
    ("bernoulli", "mean = 2.0"), ("bernoulli", "mean = -0.5"), ("sparse", "rate = 2"),
    ("sparse", "num_nonzero = 1.5"), ("sparse", "num_nonzero = 9"), ("switching", "switches = 1.5"),
    ("switching", "switches = ['a']"), ("student_t", "degrees = 0"), ("pareto", "index = -1"),
    ("scale_regimes", "factors = [1.0, 2.0]"), ("scale_regimes", "period = 0"),
    ("one_arm", "arm = 7"), ("one_arm", "arm = 0.5"), ("log_normal", "sigma = 0"),
]  # fmt: skip
WHOLE = [
    "", " ", "\n\n", "#", "=", "[", "]", "x", "title", "title =", 'title = "', "[strategies",
    "[strategies]", "[losses]", "[strategies]\n[losses]", GOOD + GOOD, GOOD + "\n[losses.dense]",
    GOOD.replace("[losses.dense]", ""), GOOD.replace("[strategies.adaptive]", ""),
    GOOD.replace("[losses.dense]", "[loses.dense]"), GOOD.replace("=", ":"),
    GOOD.replace("=", "=="), GOOD.replace('"', "\u201d"), GOOD[: len(GOOD) // 2], "{}", "[]",
    "null", '{"title": "json"}', "title: yaml\n", "<xml/>", "\ufeff" + GOOD, "\x00", GOOD + "\x00",
    "a = " + "[" * 5000, "a = " + "{a = " * 2000, "a.b.c.d = 1", "1 = 1", "'' = 1",
    "[strategies.x]\n[losses.x]", "x" * 2_000_000,
    with_setting("arms = [" + ", ".join(map(str, range(1, 200))) + "]").replace(
        "rounds = 50", "rounds = [" + ", ".join(map(str, range(1, 200))) + "]"
    ),
]  # fmt: skip
HAND_MADE = [
    *map(with_setting, SETTINGS),
    *map(with_strategy, STRATEGY_LINES),
    *map(with_losses, LOSS_LINES),
    *(with_losses(line, family) for family, line in OTHER_FAMILIES),
    *WHOLE,
]
