from fastapi import FastAPI

app = FastAPI()


@app.get("/health")
async def show_health() -> dict[str, bool]:
    return {"healthy": True}


@app.get("/items/{number}")
async def show_item(number: int) -> dict[str, int]:
    return {"number": number}
