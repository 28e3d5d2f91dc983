create type visibility as enum ('private', 'public');

create table albums (
    id bigint primary key default next_id(),
    owner bigint not null,
    title text not null,
    seen_by visibility not null default 'private',
    tags text[] not null default '{}',
    created_at timestamptz not null default now()
);
