CREATE INDEX note_by_author ON note(author, title);
CREATE VIEW note_count AS SELECT name, COUNT(*) AS notes FROM note JOIN author ON author.id = note.author GROUP BY name;
CREATE TABLE history(note INTEGER NOT NULL, what TEXT NOT NULL);
CREATE TRIGGER note_deleted AFTER DELETE ON note BEGIN INSERT INTO history VALUES (old.id, 'deleted'); END;
