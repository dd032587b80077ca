"""Leagues: players that meet each other and their past, their payoffs and ratings."""

from ding.league.league import BaseLeague, OneVsOneLeague, create_league
from ding.league.payoff import BattleRecordDict, BattleSharedPayoff, create_payoff
from ding.league.player import (
    ActivePlayer,
    HistoricalPlayer,
    LeagueExploiter,
    MainExploiter,
    MainPlayer,
    NaiveSpPlayer,
    Player,
    create_player,
    pfsp,
    uniform,
)
from ding.league.rating import (
    EloCalculator,
    LeagueMetricEnv,
    PlayerRating,
    get_elo,
    get_elo_array,
)

__all__ = [
    "ActivePlayer",
    "BaseLeague",
    "BattleRecordDict",
    "BattleSharedPayoff",
    "EloCalculator",
    "HistoricalPlayer",
    "LeagueExploiter",
    "LeagueMetricEnv",
    "MainExploiter",
    "MainPlayer",
    "NaiveSpPlayer",
    "OneVsOneLeague",
    "Player",
    "PlayerRating",
    "create_league",
    "create_payoff",
    "create_player",
    "get_elo",
    "get_elo_array",
    "pfsp",
    "uniform",
]
