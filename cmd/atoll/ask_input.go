package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// question is what the model is asked: the arguments, and the stdin of the command.
func (a *cli) question(args []string) (string, error) {
	asked := strings.TrimSpace(strings.Join(args, " "))
	if !isTerminal(a.std.in) {
		text, err := io.ReadAll(io.LimitReader(a.std.in, execution.MaxInputBytes+1))
		switch {
		case err != nil:
			return "", fmt.Errorf("stdin: %w", err)
		case len(text) > execution.MaxInputBytes:
			return "", fmt.Errorf("stdin is larger than %s; pass large texts with --file", humanBytes(execution.MaxInputBytes))
		}
		if said := strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")); said != "" {
			asked = strings.TrimSpace(asked + "\n\n" + said)
		}
	}
	if asked == "" {
		return "", wrong("want a question: atoll ask \"What is …?\", or one on stdin")
	}
	return asked, nil
}

// askInput is the input of a request: the question, and files.
func askInput(question string, files []string) (any, error) {
	if len(files) == 0 {
		return question, nil
	}
	content := []any{map[string]string{"type": "input_text", "text": question}}
	err := eachFile(files, func(name string, data []byte) {
		content = append(content, map[string]string{
			"type": "input_file", "filename": name, "file_data": "data:" + mediaOf(name) + ";base64," + base64.StdEncoding.EncodeToString(data),
		})
	})
	return []any{map[string]any{"type": "message", "role": "user", "content": content}}, err
}

// eachFile reads the files of a command line, LOCAL or LOCAL:NAME.
func eachFile(files []string, take func(name string, data []byte)) error {
	size := 0
	names := map[string]bool{}
	for _, spec := range files {
		local, name, named := strings.Cut(spec, ":")
		if !named {
			name = filepath.Base(local)
		}
		if err := execution.CheckFileName("--file", name); err != nil {
			return &exit{exitUsage, err}
		}
		if names[name] {
			return wrong("--file: duplicate file name %s", name)
		}
		names[name] = true
		data, err := readFile(local)
		if err != nil {
			return err
		}
		if size += len(data); size > execution.MaxInputBytes {
			return fmt.Errorf("--file: the files together exceed %s", humanBytes(execution.MaxInputBytes))
		}
		take(name, data)
	}
	return nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readBounded(file)
	if err != nil {
		return nil, fmt.Errorf("--file %s: %w", name, err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("--file %s: %w", name, errors.New("it is empty"))
	}
	return data, nil
}

// textTypes are the types of files that the table of the system mostly lacks.
var textTypes = map[string]string{".csv": "text/csv", ".md": "text/markdown", ".txt": "text/plain", ".log": "text/plain", ".py": "text/x-python", ".json": "application/json"}

// mediaOf is the media type of a file, by its name.
func mediaOf(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	if kind, ok := textTypes[ext]; ok {
		return kind
	}
	if kind, _, err := mime.ParseMediaType(mime.TypeByExtension(ext)); err == nil {
		return kind
	}
	return "application/octet-stream"
}
