package sandbox

import (
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	snapshotsPath = "/v1/snapshots"
	// maxKeep is the longest time that a caller can have a snapshot kept.
	maxKeep = 10 * 365 * 24 * time.Hour
)

func (h *Handlers) snapshots() []httpapi.Operation {
	const one = snapshotsPath + "/{snapshot}"
	id := []httpapi.Param{{Name: "snapshot", In: httpapi.InPath, Doc: "Its snapshot_id."}}
	unknown := httpapi.Refusal(http.StatusNotFound, "not_found: the snapshot does not exist, or belongs to another tenant.")
	return []httpapi.Operation{
		{
			Method: http.MethodPost, Path: sandboxPath + "/snapshots", ID: "createSnapshot", Summary: "Keep a sandbox as it is now", Description: "Files in `/home/user`, `/tmp` and `/var/tmp`, and processes with their memory. The sandbox stands still while it is written. The snapshot outlives the sandbox; `POST /v1/sandboxes` with `snapshot` begins another one with it. Beyond a bound of the plan the answer is 429.", Audit: "snapshot_create",
			Params:  onOne(httpapi.Param{Name: "keep_ms", Type: httpapi.Int, Min: 1, Max: maxKeep.Milliseconds(), Doc: "How long it is kept; as long as the server's rule says if not given."}),
			Answers: []httpapi.Answer{httpapi.Located(Snapshot{}, "The snapshot. If its memory cannot be saved, detail says why.")}, Serve: httpapi.Returns(h.createSnapshot),
		},
		{
			Method: http.MethodGet, Path: snapshotsPath, ID: "listSnapshots", Summary: "List snapshots", Description: "By time, also those whose sandboxes are gone.", Params: httpapi.PageParams(20, 100),
			Answers: []httpapi.Answer{httpapi.OK(SnapshotPage{}, "Those of the key's environment, newest first.")}, Serve: httpapi.Returns(h.listSnapshots),
		},
		{
			Method: http.MethodGet, Path: one, ID: "getSnapshot", Summary: "Get a snapshot", Description: "Returns the origin and size of the snapshot, and when it expires.", Params: id,
			Answers: []httpapi.Answer{httpapi.OK(Snapshot{}, "The snapshot."), unknown}, Serve: httpapi.Returns(h.getSnapshot),
		},
		{
			Method: http.MethodDelete, Path: one, ID: "deleteSnapshot", Summary: "Delete a snapshot", Description: "Sandboxes created from it continue. The data that only this snapshot uses leaves the blob store within days.", Audit: "snapshot_delete", Params: id,
			Answers: []httpapi.Answer{gone, unknown}, Serve: httpapi.Does(h.deleteSnapshot),
		},
	}
}

// createSnapshot keeps a sandbox as it is at one moment.
func (h *Handlers) createSnapshot(c *httpapi.Call) (out Snapshot, err error) {
	r, err := h.ref(c)
	if err != nil {
		return out, err
	}
	sn, err := h.Service.Snapshot(c.Context(), r, time.Duration(c.Int("keep_ms"))*time.Millisecond)
	if err != nil {
		return out, err
	}
	c.W.Header().Set("Location", snapshotsPath+"/"+string(sn.ID))
	return snapshotOf(sn), nil
}

func (h *Handlers) listSnapshots(c *httpapi.Call) (out SnapshotPage, err error) {
	cursor, err := c.Cursor()
	if err != nil {
		return out, err
	}
	page, next, err := h.Service.ListSnapshots(c.Context(), c.Caller, cursor, int(c.Int("limit")))
	if err != nil {
		return out, err
	}
	return SnapshotPage{Data: httpapi.Each(page, snapshotOf), NextPage: httpapi.OrNull(next)}, nil
}

func (h *Handlers) getSnapshot(c *httpapi.Call) (out Snapshot, err error) {
	sn, err := h.Service.GetSnapshot(c.Context(), c.Caller, sandbox.SnapshotID(c.Path("snapshot")))
	if err != nil {
		return out, err
	}
	return snapshotOf(sn), nil
}

func (h *Handlers) deleteSnapshot(c *httpapi.Call) error {
	return h.Service.DeleteSnapshot(c.Context(), c.Caller, c.Trail, sandbox.SnapshotID(c.Path("snapshot")))
}
