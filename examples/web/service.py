"""A web service that asks an agent: FastAPI, for `uvicorn[standard]`, whose loop is uvloop.

    pip install fastapi "uvicorn[standard]"
    AGENT_DIRECTORY=~/code/shop uvicorn service:app

`POST /ask` answers once, `POST /stream` while the model speaks; a thread is a session.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import codeloop


class Question(BaseModel):
    text: str
    thread: str = ""


class Reply(BaseModel):
    text: str
    thread: str
    cost: float


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # One project for all requests; sessions are what they have of their own.
    async with codeloop.open(os.environ.get("AGENT_DIRECTORY", ".")) as project:
        app.state.project = project
        yield


app = FastAPI(lifespan=lifespan)


async def find_session(request: Request, question: Question) -> codeloop.AgentSession:
    project: codeloop.AgentProject = request.app.state.project
    # A question from the web reads; it changes nothing and runs nothing that is not harmless.
    return await project.session(question.thread or None, profile="read-only")


@app.post("/ask")
async def ask(request: Request, question: Question) -> Reply:
    try:
        session = await find_session(request, question)
        answer = await session.ask(question.text)
    except codeloop.CodeloopError as error:
        raise HTTPException(502, str(error)) from error
    return Reply(text=answer.text, thread=session.id, cost=answer.cost)


@app.post("/stream")
async def stream(request: Request, question: Question) -> StreamingResponse:
    session = await find_session(request, question)

    async def speak() -> AsyncIterator[str]:
        async for event in session.stream(question.text):
            if isinstance(event, codeloop.TextAdded):
                yield event.text

    return StreamingResponse(speak(), media_type="text/plain")
