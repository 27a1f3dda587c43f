package service

import (
	"errors"
	"net/http"
	"testing"

	"github.com/atoll-run/atoll/internal/core/model"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// TestGoSDKOnResponses drives responses by the SDK for Go.
func TestGoSDKOnResponses(t *testing.T) {
	s := shared(t)
	c := sdk.New(s.URL, s.Tenant(t, "go-sdk", "pro"))
	lendModel(t, s, "clever", clever(t).URL, model.Capabilities...)
	ctx, name := t.Context(), "clever"
	r, err := c.CreateResponse(ctx, sdk.CreateResponse{Model: &name, Input: "share", Tools: &[]any{map[string]string{"type": "sandbox"}}})
	if err != nil || r.Status != "completed" {
		t.Fatalf("%+v, %v", r, err)
	}
	files, err := c.ResponseFiles(r.ID).All(ctx, 0)
	if err != nil || len(files) != 1 || files[0].Filename != "made.csv" || files[0].Bytes != 4 {
		t.Errorf("the files are %+v, %v", files, err)
	}
	if err := c.DeleteResponse(ctx, r.ID); err != nil {
		t.Error(err)
	}
	gone, ok := errors.AsType[*sdk.Error](func() error { _, err := c.Response(ctx, r.ID); return err }())
	if !ok || gone.Status != http.StatusNotFound || gone.Code != "not_found" || gone.Message == "" {
		t.Errorf("a deleted response: %+v", gone)
	}

	background := true
	slow, err := c.CreateResponse(ctx, sdk.CreateResponse{Model: &name, Input: "slow", Background: &background})
	if err != nil || slow.Status != "in_progress" {
		t.Fatalf("%+v, %v", slow, err)
	}
	var last sdk.ResponseStreamed
	number := int64(0)
	for ev, err := range c.FollowResponse(ctx, slow.ID, -1) {
		if err != nil || ev.SequenceNumber != number {
			t.Fatalf("event %d is %+v, %v", number, ev, err)
		}
		number++
		if last = ev; ev.Type == "response.output_text.delta" && number < 10 {
			if _, err := c.CancelResponse(ctx, slow.ID); err != nil && !over(err) {
				t.Fatal(err)
			}
		}
	}
	if last.Type != "response.cancelled" || last.Response.Status != "cancelled" {
		t.Errorf("the last event is %+v", last)
	}
	for ev, err := range c.FollowResponse(ctx, slow.ID, last.SequenceNumber-1) {
		if err != nil || ev.SequenceNumber != last.SequenceNumber {
			t.Errorf("it continues with %+v, %v", ev, err)
		}
	}
}

// over reports whether there was nothing more to cancel.
func over(err error) bool {
	refused, ok := errors.AsType[*sdk.Error](err)
	return ok && refused.Status == http.StatusBadRequest
}
