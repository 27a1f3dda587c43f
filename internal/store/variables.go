package store

import (
	"encoding/json"
	"errors"
)

// variableValues are variables of an environment or a key as they are stored;
// place is what the secret ones are bound to.
func (db *DB) variableValues(env, secrets map[string]string, place string) (text string, sealed []byte, err error) {
	if err := errors.Join(checkMap(env), checkMap(secrets)); err != nil {
		return "", nil, err
	}
	if text, err = jsonOf(env, len(env) == 0); err != nil || len(secrets) == 0 {
		return text, nil, err
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return "", nil, err
	}
	return text, db.seal.Seal(plain, place), nil
}

// variablesOf is the way back.
func (db *DB) variablesOf(text string, sealed []byte, place string) (env, secrets map[string]string, err error) {
	if env, err = mapOf(text); err != nil || len(sealed) == 0 {
		return env, nil, err
	}
	plain, err := db.seal.Open(sealed, place)
	if err != nil {
		return nil, nil, err
	}
	secrets, err = mapOf(string(plain))
	return env, secrets, err
}
