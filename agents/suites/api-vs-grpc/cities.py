"""Ten thousand fictional cities, always the same, stored in Redis.

`cities` ranks them by population; `city:<id>` has the data of one.
"""

import random

from redis.asyncio import Redis

COUNT = 10_000
SEED = 1
_BEGINNINGS = ("Al", "Bel", "Cor", "Dun", "Er", "Fal", "Gor", "Hel", "Is", "Jor", "Kal", "Lor")
_MIDDLES = ("a", "ba", "de", "ga", "li", "mo", "ne", "ra", "so", "ta", "vi", "zu")
_ENDS = ("bridge", "burg", "field", "ford", "haven", "mouth", "stad", "ton", "ville", "wick")
_COUNTRIES = ("Aldia", "Borland", "Cestria", "Dorne", "Elvania", "Farland", "Gallia", "Hestia")


def made_cities():
    """Return all cities as mappings of texts, the largest first."""
    dice = random.Random(SEED)
    for rank in range(COUNT):
        yield {
            "name": dice.choice(_BEGINNINGS) + dice.choice(_MIDDLES) + dice.choice(_ENDS),
            "country": dice.choice(_COUNTRIES),
            "population": str(30_000_000 // (rank + 1) + COUNT - rank),
            "latitude": f"{dice.uniform(-60, 70):.4f}",
            "longitude": f"{dice.uniform(-180, 180):.4f}",
        }


class Cities:
    """The cities in a Redis."""

    def __init__(self, url):
        self.redis = Redis.from_url(url, decode_responses=True)

    async def load(self):
        """Fill an empty Redis."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            for number, city in enumerate(made_cities()):
                pipeline.hset(f"city:{number}", mapping=city)
                pipeline.zadd("cities", {str(number): int(city["population"])})
            await pipeline.execute()

    async def random_one(self, among):
        """Return one of the `among` largest cities, with two queries to Redis."""
        rank = random.randrange(max(1, min(among, COUNT)))
        [number] = await self.redis.zrevrange("cities", rank, rank)
        city = await self.redis.hgetall(f"city:{number}")
        return {
            "name": city["name"],
            "country": city["country"],
            "population": int(city["population"]),
            "latitude": float(city["latitude"]),
            "longitude": float(city["longitude"]),
        }

    async def close(self):
        await self.redis.aclose()
