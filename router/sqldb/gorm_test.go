package sqldb_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/kiloshard/kiloshard/shards"
)

// Photo is gorm's model of the table, the same for all shards. Its ID is made by the shard.
type Photo struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false;default:next_id()"`
	Owner     int64
	Title     *string
	SeenBy    string `gorm:"default:private"`
	CreatedAt time.Time
}

func openGORM(t *testing.T, db *sql.DB, prepare bool) *gorm.DB {
	t.Helper()
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{
		PrepareStmt:    prepare,
		TranslateError: true,
		Logger:         logger.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	return orm
}

// gorm creates, reads, updates and deletes on shards that share a connection, and on another host, with one model.
func TestGORM(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		for _, prepare := range []bool{false, true} {
			b, ctx := setup(t, mode, 1)
			for _, n := range []int{14, 15, 30} {
				orm := openGORM(t, b.open(t, n), prepare).WithContext(ctx)
				if err := useGORM(orm, b, n); err != nil {
					t.Errorf("%s, prepared %t, shard %d: %v", mode, prepare, n, err)
				}
			}
			b.isFree(ctx, t)
		}
	}
}

func useGORM(orm *gorm.DB, b *testBundle, n int) error {
	title, undone := "sunset", errors.New("undone")
	photos := []Photo{{Owner: 7, Title: &title}, {Owner: 7, SeenBy: "public"}}
	if err := orm.Create(&photos).Error; err != nil {
		return err
	}
	for _, photo := range photos {
		if made, err := b.Map().ForID(shards.ID(photo.ID)); err != nil || made != shards.Number(n) || photo.CreatedAt.IsZero() {
			return errors.New("the ID is not one of the shard's, or there is no time of creation")
		}
	}
	var found []Photo
	if err := orm.Where("owner = ? and title is not null", 7).Order("id").Find(&found).Error; err != nil {
		return err
	}
	if len(found) != 1 || found[0].ID != photos[0].ID || *found[0].Title != title || found[0].SeenBy != "private" {
		return errors.New("found others than were created")
	}
	if err := orm.Model(&found[0]).Update("title", "sunrise").Error; err != nil {
		return err
	}
	err := orm.Transaction(func(tx *gorm.DB) error {
		var locked Photo
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, photos[0].ID).Error; err != nil {
			return err
		}
		nested := tx.Transaction(func(inner *gorm.DB) error { // a savepoint
			return errors.Join(inner.Model(&locked).Update("title", "undone").Error, undone)
		})
		if !errors.Is(nested, undone) {
			return nested
		}
		return tx.Model(&locked).Update("seen_by", "public").Error
	})
	if err != nil {
		return err
	}
	var last Photo
	if err := orm.First(&last, photos[0].ID).Error; err != nil {
		return err
	}
	if *last.Title != "sunrise" || last.SeenBy != "public" {
		return errors.New("an update was lost")
	}
	if err := orm.Create(&Photo{ID: last.ID}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
		return errors.Join(errors.New("a duplicate"), err)
	}
	deleted := orm.Where("owner = ?", 7).Delete(&Photo{})
	if deleted.Error != nil || deleted.RowsAffected != 2 {
		return errors.Join(errors.New("not two rows deleted"), deleted.Error)
	}
	if err := orm.First(&last, photos[0].ID).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
		return errors.Join(errors.New("a row that is deleted"), err)
	}
	return nil
}

// gorm's own migrations know the shard's tables and no others.
func TestGORMMigrator(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, modes[0], 1)
	type Album struct {
		ID    int64  `gorm:"primaryKey;autoIncrement:false;default:next_id()"`
		Title string `gorm:"size:100;index"`
	}
	for _, n := range []int{24, 25} { // of an earlier run of this test
		if _, err := b.shard(t, n).Exec(ctx, `drop table if exists albums`); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{24, 25} {
		orm := openGORM(t, b.open(t, n), false).WithContext(ctx)
		if orm.Migrator().HasTable(&Album{}) {
			t.Errorf("shard %d has the table of another", n)
		}
		for range 2 { // the second time there is nothing to do
			if err := orm.AutoMigrate(&Album{}); err != nil {
				t.Errorf("shard %d: %v", n, err)
			}
		}
		if !orm.Migrator().HasIndex(&Album{}, "Title") {
			t.Errorf("shard %d has no index", n)
		}
	}
	var count int
	if err := b.shard(t, 24).QueryRow(ctx, `select count(*) from albums`).Scan(&count); err != nil {
		t.Error(err)
	}
}
