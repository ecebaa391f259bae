CREATE TABLE `project` (
          `id` text PRIMARY KEY,
          `worktree` text NOT NULL,
          `vcs` text,
          `name` text,
          `icon_url` text,
          `icon_url_override` text,
          `icon_color` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_initialized` integer,
          `sandboxes` text NOT NULL,
          `commands` text
        );
CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer
        );
insert into session values('ses_dd8a22540ffeyBoknmyakK15ZV','global',NULL,NULL,'lucky-meadow','PROJECT','','Title','1.18.33',NULL,0,0,0,NULL,NULL,0.0,200,40,0,0,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m","providerID":"x","variant":"default"}',1795956791999,1795956803784,NULL,NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
insert into message values('msg_2275ddd80001V7jdugEP45TySn','ses_dd8a22540ffeyBoknmyakK15ZV',1795956792704,1795956803515,'{"role":"user","time":{"created":1795956792704},"agent":"build","model":{"providerID":"x","modelID":"m"},"summary":{"diffs":[]}}');
insert into message values('msg_2275dec5b001d8nSjp6o3WLE73','ses_dd8a22540ffeyBoknmyakK15ZV',1795956796525,1795956802709,'{"parentID":"msg_2275ddd80001V7jdugEP45TySn","role":"assistant","mode":"build","agent":"build","path":{"cwd":"PROJECT","root":"PROJECT"},"cost":0,"tokens":{"total":120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"x","time":{"created":1795956796525,"completed":1795956802688},"finish":"tool-calls"}');
insert into message values('msg_2275e04a2001ZB5e8uTHhxR3L0','ses_dd8a22540ffeyBoknmyakK15ZV',1795956802722,1795956803776,'{"parentID":"msg_2275ddd80001V7jdugEP45TySn","role":"assistant","mode":"build","agent":"build","path":{"cwd":"PROJECT","root":"PROJECT"},"cost":0,"tokens":{"total":120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"x","time":{"created":1795956802722,"completed":1795956803775},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
insert into part values('prt_2275dddad001x6OBkgQ38UH29U','msg_2275ddd80001V7jdugEP45TySn','ses_dd8a22540ffeyBoknmyakK15ZV',1795956796460,1795956796462,'{"type":"text","text":"\"what is in a.txt?\""}');
insert into part values('prt_2275dfcfc001DcgA6C9poUDNsr','msg_2275dec5b001d8nSjp6o3WLE73','ses_dd8a22540ffeyBoknmyakK15ZV',1795956800764,1795956800766,'{"snapshot":"0d8a474fc67971fb3dd7616e26323d3066442555","type":"step-start"}');
insert into part values('prt_2275dfd0c001WUz7AyHy6Zow5L','msg_2275dec5b001d8nSjp6o3WLE73','ses_dd8a22540ffeyBoknmyakK15ZV',1795956800780,1795956800895,'{"type":"text","text":"I look.","time":{"start":1795956800780,"end":1795956800894}}');
insert into part values('prt_2275dfd12001avUio3tf607Vts','msg_2275dec5b001d8nSjp6o3WLE73','ses_dd8a22540ffeyBoknmyakK15ZV',1795956800786,1795956801465,'{"type":"tool","tool":"bash","callID":"call_1","state":{"status":"completed","input":{"command":"cat a.txt","description":"Show"},"output":"hi\n","metadata":{"output":"hi\n","exit":0,"truncated":false},"title":"cat a.txt","time":{"start":1795956800839,"end":1795956801460}}}');
insert into part values('prt_2275e00c50017B3zQeR2aGRWHz','msg_2275dec5b001d8nSjp6o3WLE73','ses_dd8a22540ffeyBoknmyakK15ZV',1795956801748,1795956801760,'{"reason":"tool-calls","snapshot":"0d8a474fc67971fb3dd7616e26323d3066442555","type":"step-finish","tokens":{"total":120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
insert into part values('prt_2275e0785001O3oXn2pi1a1ND0','msg_2275e04a2001ZB5e8uTHhxR3L0','ses_dd8a22540ffeyBoknmyakK15ZV',1795956803461,1795956803462,'{"snapshot":"0d8a474fc67971fb3dd7616e26323d3066442555","type":"step-start"}');
insert into part values('prt_2275e0787001pwQQc51mK0ILD8','msg_2275e04a2001ZB5e8uTHhxR3L0','ses_dd8a22540ffeyBoknmyakK15ZV',1795956803463,1795956803467,'{"type":"text","text":"It says hi.","time":{"start":1795956803463,"end":1795956803467}}');
insert into part values('prt_2275e083c001QumiD8WQQHO0OW','msg_2275e04a2001ZB5e8uTHhxR3L0','ses_dd8a22540ffeyBoknmyakK15ZV',1795956803644,1795956803645,'{"reason":"stop","snapshot":"0d8a474fc67971fb3dd7616e26323d3066442555","type":"step-finish","tokens":{"total":120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
