// Makes the signatures that windlass-images is tested with, and has cosign judge them.
//
// Everything is signed by programs that are not ours: with keys by cosign itself, without keys by sigstore-go's virtual Sigstore. The
// verdicts are those of cosign's own verification, which reads each candidate from a registry as it does everywhere. Run it by hand, with
// the folder to write to; what it writes is kept in the repository, for keys and signatures are new every time.
//
//	go run . ../../../crates/images/tests/fixtures/signatures
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Fixture is one candidate, the image that it should be for, and the policy that it was made to be judged by.
type Fixture struct {
	Name      string    `json:"name"`
	MadeBy    string    `json:"madeBy"`
	Subject   string    `json:"subject"`
	Policy    string    `json:"policy"`
	Candidate Candidate `json:"candidate"`
}

// A Candidate is what a registry holds: the tag layout has a payload and annotations, the other one a bundle.
type Candidate struct {
	Payload     string            `json:"payload,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Bundle      string            `json:"bundle,omitempty"`
}

// A Policy is one key, or one identity, with the name of the trust root that vouches for it.
type Policy struct {
	Key       string `json:"key,omitempty"`
	Identity  string `json:"identity,omitempty"`
	Issuer    string `json:"issuer,omitempty"`
	TrustRoot string `json:"trustRoot,omitempty"`
}

// roots are the trust roots, by name.
var roots = map[string]json.RawMessage{}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: signatures FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	work, err := os.MkdirTemp("", "signatures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	fixtures, policies, err := sign(work)
	if err != nil {
		return err
	}

	// Every fixture under every policy.
	var table strings.Builder
	for _, fixture := range fixtures {
		for _, name := range sorted(policies) {
			word, why := judge(fixture.Subject, fixture.Candidate, policies[name])
			fmt.Fprintf(&table, "%s %s %s\n", fixture.Name, name, word)
			if name == fixture.Policy {
				fmt.Fprintf(os.Stderr, "%-28s %-22s %s %s\n", fixture.Name, name, word, firstLine(why))
			}
		}
	}

	// A heading for each fixture, then a line for each mutation: its verdict, what it changes, and the change.
	var lines strings.Builder
	for _, fixture := range fixtures {
		fmt.Fprintf(&lines, "# %s\n", fixture.Name)
		for _, mutation := range mutations(fixture, fixtures) {
			word, _ := judge(fixture.Subject, mutation.Candidate, policies[fixture.Policy])
			sign := map[string]string{"accept": "+", "refuse": "-"}[word]
			fmt.Fprintf(&lines, "%s%s %s %d %d %s\n", sign, mutation.What, mutation.Part, mutation.At, mutation.Removed, mutation.Inserted)
		}
	}

	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, fixture := range fixtures {
		if err := writeJSON(filepath.Join(folder, fixture.Name+".json"), fixture); err != nil {
			return err
		}
	}
	if err := writeJSON(filepath.Join(folder, "policies.json"), map[string]any{"policies": policies, "trustRoots": roots}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "verdicts.txt"), []byte(table.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "mutations.txt"), []byte(lines.String()), 0o644)
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 160 {
		line = line[:160]
	}
	return line
}
