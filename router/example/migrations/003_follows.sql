-- Whom a user follows is in the user's shard. The friend may be in any shard: no foreign key reaches there.
create table follows (
  user_id bigint not null references users,
  friend_id bigint not null,
  primary key (user_id, friend_id)
);

---- create above / drop below ----

drop table follows;
