package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/thread"
	"github.com/atoll-run/atoll/internal/infra/blob"
	"github.com/atoll-run/atoll/internal/node/home"
	"github.com/atoll-run/atoll/internal/node/idmap"
	"github.com/atoll-run/atoll/test/atolltest"
)

// What a thread's home has that looks like packages: text that compresses to a
// third or so.
const (
	homeFiles = 10_000
	homeFile  = 20_000 // bytes of each
	benchFor  = "ten_bench"
)

// threads measures the library that keeps homes, without a sandbox.
func threads(ctx context.Context, b *bench) (rows []report.Row, err error) {
	temp, err := b.rig.Temp("threads")
	if err != nil {
		return nil, err
	}
	s3, err := atolltest.LaunchS3(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s3.Close()) }()
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": atolltest.S3AccessKey, "AWS_SECRET_ACCESS_KEY": atolltest.S3SecretKey} {
		if err := os.Setenv(k, v); err != nil {
			return nil, err
		}
	}
	home := filepath.Join(temp, "home")
	if err := makeHome(home); err != nil {
		return nil, err
	}
	for _, where := range []struct{ name, url string }{{"a folder", "file://" + filepath.Join(temp, "blobs")}, {"S3", s3.URL}} {
		got, err := threadsIn(ctx, b, where.name, where.url, temp, home)
		rows = append(rows, got...)
		if err != nil {
			rows = append(rows, report.Row{Case: "threads in " + where.name, Err: err.Error()})
		}
	}
	return rows, nil
}

func threadsIn(ctx context.Context, b *bench, name, url, temp, folder string) (rows []report.Row, err error) {
	blobs, err := blob.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	owners, err := idmap.Find()
	if err != nil {
		return nil, err
	}
	var key [home.KeySize]byte
	rand.Read(key[:])
	store, err := home.NewStore(home.Config{Blobs: blobs, Key: key[:], Owners: owners})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	saved, err := store.Save(ctx, benchFor, folder, nil, thread.Quota{})
	if err != nil {
		return nil, err
	}
	rows = append(rows, report.Row{Case: "save 10,000 files, 200 MB, for the first time, in " + name, Unit: "ms", Measured: report.Milliseconds(time.Since(began))})
	got, err := restored(ctx, b, store, blobs, saved, name, temp, folder)
	if rows = append(rows, got...); err != nil {
		return rows, err
	}
	got, err = warmHome(ctx, b, store, saved, name, temp)
	return append(rows, got...), err
}

// restored measures a cold executor, beside an archive in the same place.
func restored(ctx context.Context, b *bench, store *home.Store, blobs *blob.Store, saved *home.Tree, name, temp, home string) ([]report.Row, error) {
	archive, err := exec.CommandContext(ctx, "tar", "-C", home, "-I", "zstd -1", "-cf", "-", ".").Output()
	if err != nil {
		return nil, fmt.Errorf("tar: %w", err)
	}
	if err := blobs.Put(ctx, "home.tar.zst", bytes.NewReader(archive)); err != nil {
		return nil, err
	}
	var ours, tar report.Sample
	for range b.count(10) {
		for _, way := range []struct {
			sample  *report.Sample
			restore func(dir string) error
		}{
			{&ours, func(dir string) error {
				t, err := store.Load(ctx, benchFor, saved.State)
				if err != nil {
					return err
				}
				return store.Restore(ctx, benchFor, t, dir, nil)
			}},
			{&tar, func(dir string) error {
				r, err := blobs.Open(ctx, "home.tar.zst", 0, -1)
				if err != nil {
					return err
				}
				defer r.Close()
				cmd := exec.CommandContext(ctx, "tar", "-C", dir, "-I", "zstd", "-xpf", "-")
				cmd.Stdin = r
				return cmd.Run()
			}},
		} {
			dir := filepath.Join(temp, "restored")
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := way.restore(dir); err != nil {
				return nil, err
			}
			*way.sample = append(*way.sample, time.Since(began))
			if err := os.RemoveAll(dir); err != nil {
				return nil, err
			}
		}
	}
	speed := func(s report.Sample) float64 { return homeFiles * homeFile / 1e6 / s.Percentile(50).Seconds() }
	return []report.Row{{
		Case: "restore it on a cold executor, from " + name, Unit: "MB/s", Measured: speed(ours), Sample: ours.Summary(),
		Baseline: speed(tar), BaselineName: "tar and zstd of an archive there", BaselineSample: tar.Summary(), Must: report.AtLeast(0.6),
	}}, nil
}

// warmHome measures what a job with a thread costs where the home was used last.
func warmHome(ctx context.Context, b *bench, store *home.Store, saved *home.Tree, name, temp string) (rows []report.Row, err error) {
	dir, err := os.MkdirTemp(temp, "cache-")
	if err != nil {
		return nil, err
	}
	cache, err := home.OpenCache(home.CacheConfig{Store: store, Dir: dir, Bytes: 1 << 40, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	var takes, unchanged, one report.Sample
	state := saved.State
	for i := range b.count(50) + 1 {
		began := time.Now()
		h, err := cache.Take(ctx, benchFor, execution.Thread{ID: "bench", State: string(state)})
		if err != nil {
			return nil, err
		}
		took := time.Since(began)
		began = time.Now()
		if _, err := h.Save(ctx, h.Dir()); err != nil {
			return nil, err
		}
		saved := time.Since(began)
		if err := os.WriteFile(filepath.Join(h.Dir(), "pkg7", "mod70", "changed"), fmt.Append(nil, i), 0o600); err != nil {
			return nil, err
		}
		began = time.Now()
		s, err := h.Save(ctx, h.Dir())
		if err != nil {
			return nil, err
		}
		if i > 0 { // the first takes are cold
			takes, unchanged, one = append(takes, took), append(unchanged, saved), append(one, time.Since(began))
		}
		state = home.State(s.State)
		if err := h.Close(true); err != nil {
			return nil, err
		}
	}
	row := func(what string, s report.Sample, must float64) report.Row {
		return report.Row{Case: what + ", p50", Unit: "ms", Measured: report.Milliseconds(s.Percentile(50)), Sample: s.Summary(), Must: report.AtMost(must)}
	}
	return []report.Row{
		row("take it where it was used last, from "+name, takes, 15),
		row("save it with nothing changed, in "+name, unchanged, 15),
		row("save it with one file changed, in "+name, one, 30),
	}, nil
}

func makeHome(home string) error {
	rnd := mathrand.New(mathrand.NewPCG(1, 6))
	data := make([]byte, homeFile)
	for i := range homeFiles {
		dir := filepath.Join(home, fmt.Sprint("pkg", i/250), fmt.Sprint("mod", i/25))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for j := range data { // words of a few letters that return
			if data[j] = byte(rnd.IntN(40)) + 'a'; j >= 64 && rnd.IntN(8) > 0 {
				data[j] = data[j-64]
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.py", i)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
