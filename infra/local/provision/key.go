package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/google/renameio/v2"

	"signalbox.dev/infra/local/template"
)

// keysFile maps logical ids to ARNs: a key has no name to find it by.
const keysFile = "keys.json"

// allKeys finds the remembered keys and makes the others. A crash before they
// are remembered leaves keys behind that nothing uses.
func (p *provisioner) allKeys(ctx context.Context, declared []template.Key, dir string) error {
	path := filepath.Join(dir, keysFile)
	remembered, err := readKeys(path)
	if err != nil {
		return err
	}
	known := len(remembered)
	for _, key := range declared {
		if _, ok := remembered[key.ID]; ok {
			continue
		}
		created, err := p.keys.CreateKey(ctx, &kms.CreateKeyInput{Description: &key.Description})
		if err != nil {
			return fmt.Errorf("creating key %s: %w", key.ID, err)
		}
		remembered[key.ID] = aws.ToString(created.KeyMetadata.Arn)
	}
	if len(remembered) > known {
		if err := writeKeys(path, remembered); err != nil {
			return err
		}
	}
	for _, key := range declared {
		if err := p.find(ctx, key.ID, remembered[key.ID]); err != nil {
			return err
		}
	}
	return nil
}

func (p *provisioner) find(ctx context.Context, id, arn string) error {
	found, err := p.keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &arn})
	var missing *types.NotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("key %s (%s) is gone, and with it what it sealed; `make reset` starts anew", id, arn)
	}
	if err != nil {
		return fmt.Errorf("finding key %s: %w", id, err)
	}
	p.done(id, template.Attributes{"Ref": aws.ToString(found.KeyMetadata.KeyId), "Arn": arn})
	return nil
}

func readKeys(path string) (map[string]string, error) {
	keys := make(map[string]string)
	text, err := os.ReadFile(path) //nolint:gosec // a file of the state folder
	if errors.Is(err, fs.ErrNotExist) {
		return keys, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return keys, nil
}

func writeKeys(path string, keys map[string]string) error {
	text, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("remembering the keys: %w", err)
	}
	return nil
}
