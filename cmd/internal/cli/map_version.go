package cli

import (
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// MapVersion is one version of the map without the map, as JSON has it.
type MapVersion struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`             // as whoever made it says
	Role    string    `json:"role,omitempty"` // as the control database says
	Why     string    `json:"why"`
}

// VersionOf returns the version that an entry of a store is.
func VersionOf(e mapstore.Entry) MapVersion {
	return MapVersion{Version: e.Map.Version(), At: e.At.UTC(), By: e.By, Role: e.Role, Why: e.Why}
}

// String returns all of it on one line.
func (v MapVersion) String() string {
	text := fmt.Sprintf("version %d, %s", v.Version, Stamp(v.At))
	if by := v.Who(); by != "" {
		text += " by " + by
	}
	if v.Why != "" {
		text += ": " + OneLine(v.Why)
	}
	return text
}

// Who says who made it: the role if the store knows it, and the name that was given.
func (v MapVersion) Who() string {
	role, by := OneLine(v.Role), OneLine(v.By)
	switch {
	case role == "":
		return by
	case by == "":
		return "role " + role
	}
	return fmt.Sprintf("role %s (claimed: %s)", role, by)
}
