package edition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"

	"signalbox.dev/infra/local/template"
)

// EnvironmentFile is where Back writes the functions' environment, in the state
// folder.
const EnvironmentFile = "sam-env.json"

// Back starts what the functions need (engines, tables, keys, bucket, demo
// account) but neither the functions nor the gateway: `sam local start-api` runs
// them on the port of the options, with EnvironmentFile as its --env-vars.
func Back(ctx context.Context, o Options) (*Edition, error) {
	loaded, err := template.Load(filepath.Join(o.Root, "template.yaml"), o.Parameters)
	if err != nil {
		return nil, err
	}
	e := &Edition{served: make(chan error), BaseURL: fmt.Sprintf("http://127.0.0.1:%d/api/v1", o.Port)}
	if err := e.back(ctx, o, loaded); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Edition) back(ctx context.Context, o Options, t *template.Template) error {
	api, err := t.API()
	if err != nil {
		return err
	}
	if err := e.lockState(ctx, o); err != nil {
		return err
	}
	made, err := e.startEngines(ctx, o, t, api)
	if err != nil {
		return err
	}
	return e.writeEnvironment(o, t, made)
}

// writeEnvironment writes the environment of each function as sam local reads it.
func (e *Edition) writeEnvironment(o Options, t *template.Template, made template.Resources) error {
	declared, err := t.Functions(made)
	if err != nil {
		return err
	}
	all := map[string]map[string]string{}
	for _, f := range declared {
		if all[f.ID], err = e.environment(f); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(o.State, EnvironmentFile), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the functions' environment: %w", err)
	}
	return nil
}
