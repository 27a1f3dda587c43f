package mcpbridge

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"time"
)

const (
	// maxMessage bounds the message of a client that Refuse reads, in bytes.
	maxMessage = 1 << 20

	// refuseTime is how long Refuse waits for a client's first request, which clients
	// send as soon as they have started this program.
	refuseTime = 10 * time.Second
)

// codeInternal is JSON-RPC's code for a failure of the server.
const codeInternal = -32603

// Refuse answers the first request of a client, which is initialize, with why: a
// client shows that to people, and little of what this program writes to stderr. It
// returns when in ends, when ctx does, or after 10 seconds.
func Refuse(ctx context.Context, in io.Reader, out io.Writer, why error) error {
	ids := make(chan json.RawMessage, 1)
	go func() { // ends with the input: nothing stops a read of stdin
		defer close(ids)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxMessage)
		for lines.Scan() {
			if id := requestID(lines.Bytes()); id != nil {
				ids <- id
				return
			}
		}
	}()
	late := time.NewTimer(refuseTime)
	defer late.Stop()
	select {
	case id, ok := <-ids:
		if !ok {
			return nil // it asked for nothing
		}
		return answer(out, id, why)
	case <-late.C:
	case <-ctx.Done():
	}
	return nil
}

// requestID returns the id of a message that is a request, nil of one that is none.
func requestID(message []byte) json.RawMessage {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(message, &m) != nil || m.Method == "" || string(m.ID) == "null" {
		return nil
	}
	return m.ID
}

func answer(out io.Writer, id json.RawMessage, why error) error {
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	text, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   failure         `json:"error"`
	}{"2.0", id, failure{codeInternal, why.Error()}})
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}
