// Command provenance writes the provenance of the files in a folder, as an in-toto statement with
// the predicate SLSA provenance v1: which commit they were built from, and how.
//
//	go run ./packaging/provenance -version V -commit C -epoch SECONDS FOLDER
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

const repository = "git+https://github.com/atoll-run/atoll"

// statement is an in-toto statement: https://in-toto.io/Statement/v1.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// predicate is SLSA provenance: https://slsa.dev/spec/v1.0/provenance.
type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []dependency      `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
		Metadata struct {
			StartedOn time.Time `json:"startedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

func main() {
	version := flag.String("version", "", "of the release")
	commit := flag.String("commit", "", "that the files were built from")
	epoch := flag.Int64("epoch", 0, "time of the commit, in Unix seconds")
	flag.Parse()
	var s statement
	s.Type, s.PredicateType = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
	entries, err := os.ReadDir(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		sum, err := hash(filepath.Join(flag.Arg(0), e.Name()))
		if err != nil {
			log.Fatal(err)
		}
		s.Subject = append(s.Subject, subject{e.Name(), map[string]string{"sha256": sum}})
	}
	b := &s.Predicate.BuildDefinition
	b.BuildType = "https://github.com/atoll-run/atoll/make-release/v1"
	b.ExternalParameters = map[string]string{"version": *version, "target": "release"}
	b.ResolvedDependencies = []dependency{{repository + "@" + *commit, map[string]string{"gitCommit": *commit}}}
	r := &s.Predicate.RunDetails
	r.Builder.ID = repository + "/Makefile"
	r.Builder.Version = map[string]string{"go": runtime.Version()}
	r.Metadata.StartedOn = time.Unix(*epoch, 0).UTC() // of the commit, so that a rebuild gives the same bytes
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(s); err != nil {
		log.Fatal(err)
	}
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
