-- A photo lives on its user's shard, so the foreign key stays inside the schema. Its ID is made by
-- the shard: it tells the time and the shard, and newer photos have larger ones.
create table photos (
  id bigint primary key default next_id(),
  user_id bigint not null references users,
  title text not null
);

create index photos_of_user on photos (user_id, id desc);

---- create above / drop below ----

drop table photos;
