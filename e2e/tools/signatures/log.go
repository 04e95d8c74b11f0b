package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/go-openapi/runtime"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	tiles "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	rekornote "github.com/sigstore/rekor-tiles/v2/pkg/note"
	"github.com/sigstore/rekor/pkg/generated/models"
	rekortypes "github.com/sigstore/rekor/pkg/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"
	checkpoints "github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	"google.golang.org/protobuf/encoding/protojson"
)

// firstLog answers cosign as Rekor 1 does. The virtual Sigstore signs what it answers.
func firstLog(virtual *ca.VirtualSigstore) http.Handler {
	return answering(func(request []byte) (string, []byte, error) {
		proposed, err := models.UnmarshalProposedEntry(bytes.NewReader(request), runtime.JSONConsumer())
		if err != nil {
			return "", nil, err
		}
		entry, err := rekortypes.CreateVersionedEntry(proposed)
		if err != nil {
			return "", nil, err
		}
		body, err := rekortypes.CanonicalizeEntry(context.Background(), entry)
		if err != nil {
			return "", nil, err
		}
		id, err := virtual.RekorLogID()
		if err != nil {
			return "", nil, err
		}
		at, index := time.Now().Unix(), int64(1000)
		payload := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at, LogIndex: index, LogID: id}
		promise, err := virtual.RekorSignPayload(payload)
		if err != nil {
			return "", nil, err
		}
		proof, err := virtual.GetInclusionProof(body)
		if err != nil {
			return "", nil, err
		}
		leaf := rfc6962.DefaultHasher.HashLeaf(body)
		uuid := hex.EncodeToString(leaf)
		answer, err := json.Marshal(models.LogEntry{uuid: models.LogEntryAnon{
			Body: payload.Body, IntegratedTime: &at, LogID: &id, LogIndex: &index,
			Verification: &models.LogEntryAnonVerification{InclusionProof: proof, SignedEntryTimestamp: promise},
		}})
		return uuid, answer, err
	})
}

// A secondLog answers cosign as Rekor 2 does: no promise, no time, a checkpoint as a signed note.
type secondLog struct{ key *ecdsa.PrivateKey }

const secondLogHost = "log2.localhost"

func newSecondLog() (*secondLog, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &secondLog{key}, err
}

func (second *secondLog) trusted() (string, *root.TransparencyLog, error) {
	_, id, err := rekornote.KeyHash(secondLogHost, second.key.Public())
	if err != nil {
		return "", nil, err
	}
	return hex.EncodeToString(id), &root.TransparencyLog{
		BaseURL: "https://" + secondLogHost, ID: id, HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256,
		PublicKey: second.key.Public(), ValidityPeriodStart: time.Now().Add(-time.Hour), ValidityPeriodEnd: time.Now().Add(time.Hour),
	}, nil
}

func (second *secondLog) handler() http.Handler {
	return answering(func(request []byte) (string, []byte, error) {
		var asked tiles.CreateEntryRequest
		if err := protojson.Unmarshal(request, &asked); err != nil {
			return "", nil, err
		}
		wanted := asked.GetHashedRekordRequestV002()
		entry := &tiles.Entry{Kind: "hashedrekord", ApiVersion: "0.0.2", Spec: &tiles.Spec{Spec: &tiles.Spec_HashedRekordV002{
			HashedRekordV002: &tiles.HashedRekordLogEntryV002{
				Data:      &common.HashOutput{Algorithm: common.HashAlgorithm_SHA2_256, Digest: wanted.Digest},
				Signature: wanted.Signature,
			}}}}
		text, err := protojson.Marshal(entry)
		if err != nil {
			return "", nil, err
		}
		body, err := jsoncanonicalizer.Transform(text)
		if err != nil {
			return "", nil, err
		}
		// The entry is the second one, so that there is a path to prove.
		other := sha256.Sum256([]byte("the first entry"))
		leaf := rfc6962.DefaultHasher.HashLeaf(body)
		top := rfc6962.DefaultHasher.HashChildren(other[:], leaf)
		signer, err := signature.LoadECDSASignerVerifier(second.key, crypto.SHA256)
		if err != nil {
			return "", nil, err
		}
		noteSigner, err := rekornote.NewNoteSigner(context.Background(), secondLogHost, signer)
		if err != nil {
			return "", nil, err
		}
		head := checkpoints.Checkpoint{Origin: secondLogHost, Size: 2, Hash: top}.Marshal()
		signed, err := note.Sign(&note.Note{Text: string(head)}, noteSigner)
		if err != nil {
			return "", nil, err
		}
		_, id, err := rekornote.KeyHash(secondLogHost, second.key.Public())
		if err != nil {
			return "", nil, err
		}
		answer, err := protojson.Marshal(&protorekor.TransparencyLogEntry{
			LogIndex: 1, LogId: &common.LogId{KeyId: id}, KindVersion: &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.2"},
			CanonicalizedBody: body,
			InclusionProof: &protorekor.InclusionProof{LogIndex: 1, TreeSize: 2, RootHash: top, Hashes: [][]byte{other[:]},
				Checkpoint: &protorekor.Checkpoint{Envelope: string(signed)}},
		})
		return "", answer, err
	})
}

func answering(answer func([]byte) (string, []byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		tag, text, err := answer(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, "log:", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(text)
	})
}
