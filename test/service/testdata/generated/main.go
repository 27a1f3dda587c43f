// Command main calls an Atoll server with a generated client.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"generated/api"
)

func main() {
	client, err := api.NewClientWithResponses(os.Getenv("ATOLL_URL"), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("ATOLL_API_KEY"))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	language := api.ExecuteRequestLanguage("python")
	run, err := client.RunProgramWithResponse(context.Background(), nil, api.ExecuteRequest{Code: "print(6 * 7)", Language: &language})
	if err != nil || run.JSON200 == nil {
		log.Fatal(err, run)
	}
	none, err := client.GetExecutionWithResponse(context.Background(), "trc_none")
	if err != nil || none.JSON404 == nil {
		log.Fatal(err, none)
	}
	fmt.Println(strings.TrimSpace(run.JSON200.Stdout), none.JSON404.Error)
}
