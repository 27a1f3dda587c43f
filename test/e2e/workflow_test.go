package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// backend serves the front end's build, and an answer of its own.
const backend = `from fastapi import FastAPI, WebSocket
from fastapi.staticfiles import StaticFiles

app = FastAPI()

@app.get("/api/sum")
def total(a: int, b: int):
    return {"sum": a + b}

@app.websocket("/ws")
async def echo(ws: WebSocket):
    await ws.accept()
    async for text in ws.iter_text():
        await ws.send_text("heard " + text)

app.mount("/", StaticFiles(directory="static", html=True))
`

// frontend counts clicks, and shows what the back end says.
const frontend = `import { useEffect, useRef, useState } from "react"

export default function App() {
  const [count, setCount] = useState(0)
  const [sum, setSum] = useState("")
  const [heard, setHeard] = useState("")
  const socket = useRef(null)
  useEffect(() => {
    fetch("/api/sum?a=20&b=22").then(r => r.json()).then(r => setSum(r.sum))
    socket.current = new WebSocket("ws://" + location.host + "/ws")
    socket.current.onopen = () => socket.current.send("the page")
    socket.current.onmessage = e => setHeard(e.data)
    return () => socket.current.close()
  }, [])
  const click = () => { setCount(count + 1); socket.current.send("click " + (count + 1)) }
  return <>
    <h1>Vite + React</h1>
    <button onClick={click}>count is {count}</button>
    <p id="sum">{sum}</p>
    <p id="heard">{heard}</p>
  </>
}
`

// TestWorkflow is the contract's example, call by call: a front end built in one
// sandbox, a back end in another that serves it, and the page opened in a browser.
func TestWorkflow(t *testing.T) {
	server := atolltest.Start(t, atolltest.Options{Env: []string{
		"ATOLL_SANDBOX_CA_BUNDLE=" + machineCA(t), "ATOLL_PIP_INDEX=" + pipIndex(t), "ATOLL_NPM_REGISTRY=" + npmRegistry(t), "ATOLL_MAX_TIMEOUT=1h",
	}})
	key := networked(t, server, "workflow", map[string]any{"enabled": true, "allowed_hosts": []string{}})
	s := newSession(t, server, key, "combine")

	s.tool("sandbox_create", object{"sandbox": "frontend", "image": "node:18"}, http.StatusOK)
	s.tool("sandbox_create", object{"sandbox": "backend", "image": "python:3"}, http.StatusOK)
	run := func(sandbox, command string) {
		t.Helper()
		out := s.tool("shell", object{"sandbox": sandbox, "command": command, "timeout_ms": 600_000}, http.StatusOK)
		if out["exit_code"] != 0.0 {
			t.Fatalf("%s: %v", command, out)
		}
	}
	run("frontend", "npm create vite@5 app -- --template react")
	s.tool("write_file", object{"sandbox": "frontend", "path": "/home/user/app/src/App.jsx", "content": frontend}, http.StatusOK)
	run("frontend", "cd app && npm install && npm run build")
	run("backend", "pip install fastapi uvicorn websockets && mkdir app")
	s.tool("write_file", object{"sandbox": "backend", "path": "/home/user/app/main.py", "content": backend}, http.StatusOK)
	moved := s.tool("transfer", object{"from_sandbox": "frontend", "from_path": "/home/user/app/dist", "to_sandbox": "backend", "to_path": "/home/user/app/static", "recursive": true}, http.StatusOK)
	if moved["bytes"].(float64) < 100_000 { // React alone is more
		t.Errorf("transfer: %v", moved)
	}
	run("backend", "cd /home/user/app && uvicorn main:app --host 0.0.0.0 --port 8000 &")
	address := s.tool("browse", object{"sandbox": "backend", "port": 8000}, http.StatusOK)["url"].(string)
	// The server was started in the background: it needs a moment to listen.
	atolltest.Until(t, time.Minute, "the page is there", func() bool { return previewed(t, address).get("/").StatusCode == http.StatusOK })

	page := newBrowser(t).open(address)
	page.text("h1", "Vite + React") // which React has written
	page.text("#sum", "42")
	page.text("#heard", "heard the page")
	page.text("button", "count is 0")
	page.click("button")
	page.text("button", "count is 1")
	page.text("#heard", "heard click 1")
}
