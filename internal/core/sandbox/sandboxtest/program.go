package sandboxtest

// Program is a command that starts what a sleep has to bring back, and waits until
// it has begun: memory, an open file, one without a name, a timer, and a server that
// tells of them.
const Program = `cat >~/server.py <<'END'
import hashlib, os, random, socket, threading, time
heap = random.randbytes(1 << 20) * 8
kept = open(os.path.expanduser("~/kept"), "w+"); kept.write("open file"); kept.flush()
gone = open("/tmp/gone", "w+"); gone.write("deleted file"); gone.flush(); os.unlink("/tmp/gone")
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.005); ticks += 1
threading.Thread(target=tick, daemon=True).start()
l = socket.create_server(("127.0.0.1", 7000))
open("/tmp/ready", "w").close()
while True:
    c, _ = l.accept()
    kept.seek(0); gone.seek(0)
    c.sendall(f"{os.getpid()} {hashlib.sha256(heap).hexdigest()} {kept.read()} {gone.read()} {ticks}\n".encode()); c.close()
END
setsid python3 ~/server.py >~/log 2>&1 </dev/null &
for i in $(seq 1000); do [ -e /tmp/ready ] && exit; sleep 0.01; done; cat ~/log; exit 1`

// Told is a command that writes what the program tells: words that stay the same, and
// last how often its timer went off.
const Told = "exec 3<>/dev/tcp/127.0.0.1/7000; cat <&3"
