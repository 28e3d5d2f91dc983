package prove_test

import (
	"crypto/md5" //nolint:gosec // of names
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

var definition = entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{
	{Name: "index_user_id", Properties: []entities.Property{{Name: "user_id", Type: entities.Text}, {Name: "published", Type: entities.Int}}},
	{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}},
	{Name: "index_email", Properties: []entities.Property{{Name: "email", Type: entities.Text}}, Unique: true},
	{Name: "index_tags", Properties: []entities.Property{{Name: "tags", Type: entities.Text, Each: true}}},
	{Name: "index_public", Properties: []entities.Property{{Name: "score", Type: entities.Int}}, Where: map[string]any{"public": true}},
}}

// document is the body of an entity.
type document struct {
	UserID    string   `json:"user_id"`
	Published int      `json:"published"`
	Link      string   `json:"link"`
	Email     string   `json:"email,omitempty"`
	Tags      []string `json:"tags"`
	Score     int      `json:"score"`
	Public    bool     `json:"public"`
}

// ids are the entities that all writers write: for two seconds they all write the same few, and then leave them. So their writes
// meet, and a row that is lost then is not soon written again.
var ids = func() []entities.ID {
	all := make([]entities.ID, 100)
	for i := range all {
		all[i] = md5.Sum(fmt.Append(nil, i)) //nolint:gosec // see above
	}
	return all
}()

// few returns the first of those that are written now.
func few() int { return int(time.Now().Unix()/2%20) * 5 }

func randomID() entities.ID { return ids[few()+rand.IntN(5)] }

func randomBody() []byte {
	d := document{
		UserID: fmt.Sprint("u", rand.IntN(3)), Published: rand.IntN(2), Link: fmt.Sprint("l", rand.IntN(5)),
		Score: rand.IntN(4), Public: rand.IntN(2) == 0,
	}
	if rand.IntN(4) > 0 {
		d.Email = fmt.Sprint("e", (few()+rand.IntN(8))%len(ids))
	}
	for range rand.IntN(4) {
		d.Tags = append(d.Tags, fmt.Sprint("t", rand.IntN(5)))
	}
	text, _ := json.Marshal(d) // of plain values
	return text
}

// indexRows are the queries for all rows of the indexes, as text.
var indexRows = map[string]string{
	"index_user_id": `select concat_ws(' ', user_id, published, entity_id) from index_user_id`,
	"index_link":    `select concat_ws(' ', link, entity_id) from index_link`,
	"index_email":   `select concat_ws(' ', email, entity_id) from index_email`,
	"index_tags":    `select concat_ws(' ', tags, entity_id) from index_tags`,
	"index_public":  `select concat_ws(' ', score, entity_id) from index_public`,
}

// rowsOf returns the index rows of an entity, with the indexes and the shards that must have them. It shares no code with the package.
func rowsOf(id string, d document) (all []string) {
	add := func(index string, lead any, rest string) {
		n := shards.MD5Shard(fmt.Append(nil, lead), shardCount)
		all = append(all, fmt.Sprintf("%s, shard %d: %v%s %s", index, n, lead, rest, id))
	}
	add("index_user_id", d.UserID, fmt.Sprint(" ", d.Published))
	add("index_link", d.Link, "")
	if d.Email != "" {
		add("index_email", d.Email, "")
	}
	slices.Sort(d.Tags)
	for _, tag := range slices.Compact(d.Tags) {
		add("index_tags", tag, "")
	}
	if d.Public {
		add("index_public", d.Score, "")
	}
	return all
}

// collect returns what a query finds in all shards, with their numbers.
func (c *cluster) collect(query string, fn func(n shards.Number, text string)) {
	c.t.Helper()
	var groups []many.OfShard[string]
	c.succeeds(func() (err error) {
		groups, err = many.CollectByShard(c.t.Context(), c.r, c.r.All(), many.Query[string]{SQL: query, Scan: pgx.RowTo[string]})
		return err
	})
	for _, g := range groups {
		for _, text := range g.Rows {
			fn(g.Shard.Number(), text)
		}
	}
}

// documents returns all entities by their IDs. Each must be in its shard, and only there.
func (c *cluster) documents() (all map[string]document, problems []string) {
	c.t.Helper()
	all = map[string]document{}
	c.collect(`select id || ' ' || body from entities`, func(n shards.Number, text string) {
		id, body := text[:36], text[37:]
		var d document
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			problems = append(problems, fmt.Sprintf("entity %s: %v", id, err))
		}
		i := slices.IndexFunc(ids, func(o entities.ID) bool { return uuid(o) == id })
		if _, twice := all[id]; twice || i < 0 || shards.MD5Shard(ids[i][:], shardCount) != n {
			problems = append(problems, fmt.Sprintf("entity %s is in shard %d", id, n))
		}
		all[id] = d
	})
	return all, problems
}

func uuid(id entities.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// disagreements returns where indexes and entities differ, which unique values stand twice, and what is pending.
func (c *cluster) disagreements() (problems []string) {
	c.t.Helper()
	documents, problems := c.documents()
	want, owner := map[string]bool{}, map[string]string{}
	for id, d := range documents {
		for _, row := range rowsOf(id, d) {
			want[row] = true
		}
		if other, twice := owner[d.Email]; twice && d.Email != "" {
			problems = append(problems, fmt.Sprintf("entities %s and %s have %s", id, other, d.Email))
		}
		owner[d.Email] = id
	}
	for index, query := range indexRows {
		c.collect(query, func(n shards.Number, text string) {
			row := fmt.Sprintf("%s, shard %d: %s", index, n, text)
			if !want[row] {
				problems = append(problems, "no entity has "+row)
			}
			delete(want, row)
		})
	}
	for _, row := range slices.Sorted(maps.Keys(want)) {
		problems = append(problems, "there is no "+row)
	}
	c.collect(`select w::text from entity_work w`, func(n shards.Number, text string) {
		problems = append(problems, fmt.Sprintf("pending in shard %d: %s", n, text))
	})
	var differences []provision.Difference
	c.succeeds(func() (err error) {
		differences, err = provision.Verify(c.t.Context(), c.load())
		return err
	})
	for _, d := range differences {
		if d.Kind == provision.KindEntities {
			problems = append(problems, d.String())
		}
	}
	return problems
}
