"""The commands that change something on another machine or service: rows, one a line (but see PACKAGE_RUNNERS).

`git push ! -n --dry-run` is a program and the words after it, where options in between are skipped. A word may list
alternatives (`push,publish`) and contain stars; `add~` means `add` and `add-*`; `**` stands for any words. After `!`:
options with which the command changes nothing there. After `+`: options, one of which it needs to change something.
After `>`: a pattern that its last operand must match. `not` before a row: such a command changes nothing.
"""

VERSION_CONTROL_ROWS = """
git push ! -n --dry-run
git send-pack,http-push,imap-send,send-email ! --dry-run
git lfs push ! --dry-run
git svn dcommit,branch,tag ! -n --dry-run
git svn set-tree
git p4 submit ! -n --dry-run
git cvsexportcommit + -c
git subtree push
git annex sync,copy,move,push,assist
git remote-https,remote-http,remote-ssh
git flow ** publish
git town sync,ship,propose
git review,pr,pull-request
svn commit,ci,import,mkdir,copy,delete,move,propset,lock,unlock > *://*
svn commit,ci
hg push
bzr push
jj git push ! --dry-run
arc diff,land
repo upload ! -n --dry-run
gt submit,s,ss ! --dry-run
"""

FORGE_ROWS = """
gh pr close,comment,create,edit,lock,merge,ready,reopen,revert,review,unlock,update-branch
gh issue close,comment,create,delete,develop,edit,lock,pin,reopen,transfer,unlock,unpin
gh release create,delete,delete-asset,edit,upload
gh repo archive,create,delete,edit,fork,rename,sync,unarchive
gh repo deploy-key add,delete
gh repo autolink create,delete
gh gist create,delete,edit,rename
gh workflow disable,enable,run
gh run cancel,delete,rerun
gh secret,variable delete,remove,set
gh label clone,create,delete,edit
gh ssh-key,gpg-key add,delete
gh cache delete
gh codespace create,cp,delete,edit,rebuild,ssh,stop
gh discussion close,comment,create,delete,edit,lock,reopen
gh project close,copy,create,delete,edit,field-create,field-delete,item-add,item-archive,item-create,item-delete
gh project item-edit,link,mark-template,unlink
gh agent-task create
glab mr,issue,incident,epic approve,close,create,delete,for,lock,merge,new,note,rebase,reopen,revoke,subscribe,update
glab release create,delete,upload
glab repo archive,create,delete,fork,mirror,transfer
glab ci,pipeline cancel,delete,retry,run,trigger
glab variable,label,snippet,ssh-key,deploy-key,schedule,milestone,token add,create,delete,revoke,rotate,run,set,update
hub push,pull-request,create,delete,fork
hub issue,pr,release,gist create,delete,edit,labels,merge,transfer,update
tea ** close,comment,create,delete,edit,merge,reopen
bb ** create,merge,comment,approve,decline
jira ** add,assign,clone,comment,create,delete,edit,move
"""

PACKAGE_ROWS = """
npm publish,unpublish ! --dry-run
npm deprecate,undeprecate
npm dist-tag,dist-tags add,rm,set
npm owner,access,team,token,org,hook add,create,destroy,grant,public,restricted,revoke,rm,set
npm stage publish
yarn publish
yarn npm publish ! --dry-run -n
yarn npm tag add,remove
yarn workspaces foreach ** publish
yarn workspace * publish
pnpm publish,unpublish ! --dry-run
pnpm deprecate,undeprecate
bun,deno,jsr publish ! --dry-run
lerna publish
changeset publish
nx release ! --dry-run -d
semantic-release ! --dry-run -d
release-it ! --dry-run
np ! --preview
vsce,ovsx publish,unpublish
electron-builder + --publish -p
clean-publish
pkg-pr-new publish
twine upload,register
uv,poetry,flit,hatch,pdm,rye,maturin publish ! --dry-run
maturin upload
setup.py ** upload,register
anaconda,conda upload
huggingface-cli,hf upload,upload-large-folder,repo,delete
cargo publish ! -n --dry-run
cargo yank
cargo owner + -a --add -r --remove
cargo release + -x --execute
cargo smart-release + -e --execute
gem push,yank,owner
rake release
mvn ** deploy,*:deploy,*:deploy-file,*release:perform,*release:prepare,*jib:build
gradle ** publish,*:publish,publishPlugins,publish*Repository,publishToSonatype,publishToMavenCentral ! -m --dry-run
gradle ** publishAndReleaseToMavenCentral,uploadArchives,jib,*:jib,closeAndRelease* ! -m --dry-run
sbt ** publish,publishSigned,release,sonatype*,*/publish
lein deploy
clojure,clj ** deploy
mix hex.publish,hex.retire ! --dry-run
dotnet nuget push,delete
nuget push,delete
pod trunk push,delete,deprecate
dart,flutter pub publish ! -n --dry-run
stack,cabal upload
opam publish
luarocks upload
elm publish
gleam publish
nimble publish
docker push
docker image,manifest,compose,buildx push
docker build,buildx + --push
docker stack deploy,rm
docker service create,update,rm,scale,rollback
skopeo copy,delete,sync
crane push,copy,cp,delete,tag,append,mutate
oras push,attach,copy,cp
ko publish,build,resolve ! --local -L --push=false
ko apply
helm push,cm-push
goreleaser release,publish ! --snapshot
fastlane ** deliver,pilot,supply,release,upload*,deploy*
snapcraft upload,push,release,close
charmcraft upload,release
ansible-galaxy ** publish,import,delete
wasm-pack publish
dvc push
cachix push
"""

DEPLOYMENT_ROWS = """
kubectl annotate,apply,attach,autoscale,cordon,cp,create,debug,delete ! --dry-run
kubectl drain,edit,exec,expose,label,patch,replace,run,scale,set ! --dry-run
kubectl taint,uncordon,evict,certificate,adm,new-app,new-project,start-build,process ! --dry-run
kubectl rsh
kubectl rollout restart,undo,pause,resume,latest ! --dry-run
helm delete,install,rollback,uninstall,upgrade ! --dry-run
helmfile apply,destroy,sync,delete
kustomize apply
argocd ** create,delete,delete-resource,rollback,set,sync,patch,patch-resource,terminate-op,unset ! --dry-run
flux bootstrap,create,delete,install,reconcile,resume,suspend,uninstall,push ! --export
eksctl,kops,k0sctl apply,create,delete,replace,scale,upgrade,update
istioctl install,uninstall,upgrade ! --dry-run
skaffold run,deploy,delete,apply
terraform apply,destroy,import,refresh,taint,untaint,force-unlock,apply-all,destroy-all
terraform state mv,push,replace-provider,rm ! -dry-run
terraform workspace delete,new
terraform run-all,run,stack ** apply,destroy
pulumi cancel,destroy,import,refresh,rename,up,update ! --preview-only
pulumi stack init,rm,rename
pulumi state delete,move,rename,upgrade
cdk,cdktf bootstrap,deploy,destroy,import,rollback
sam delete,deploy,publish,sync
chalice,amplify delete,deploy,publish,push
serverless deploy,remove,rollback,invoke
copilot,eb,cf,convox,ecs-cli ** create,delete,deploy,destroy,init,push,restart,restage,scale,terminate,up
kamal deploy,redeploy,remove,rollback,setup,app,accessory,env
nomad job run,stop,revert,scale,dispatch
nomad run,stop
consul kv put,delete
vault delete,write
vault kv delete,destroy,metadata,patch,put,rollback,undelete
fly deploy,destroy,launch,scale,restart,resume,suspend,ssh,import
fly apps,machine,machines,volumes,volume,secrets,ips,certs,postgres,redis add,allocate*,clone,create,delete,deploy
fly apps,machine,machines,volumes,volume,secrets,ips,certs,postgres,redis destroy,import,kill
fly apps,machine,machines,volumes,volume,secrets,ips release,remove,restart,run,set,start,stop,unset,update
vercel alias,bisect,certs,deploy,dns,domains,promote,redeploy,remove,rm,rollback,rolling-release
vercel env add,rm,remove,update
vercel
not vercel build,cache,dev,git,help,init,inspect,link,list,login,logout,logs,ls,open,project,pull,switch,teams,whoami
not vercel env,dns,domains,certs,alias,rolling-release list,ls,pull,inspect
netlify deploy,env:set,env:unset,env:import,sites:create,sites:delete,api,unlink
heroku *:add,*:attach,*:clear,*:create,*:destroy,*:detach,*:disable,*:enable,*:exec,*:import,*:off,*:on,*:promote
heroku *:push,*:release,*:remove,*:rename,*:reset,*:resize,*:restart,*:restore,*:rollback,*:run,*:scale,*:set
heroku *:stop,*:unset
heroku create,destroy,restart,run,scale,releases:rollback
firebase deploy,*:delete,*:disable,*:set,*:create,*:import
wrangler delete,deploy,publish,rollback
wrangler secret,kv,pages,r2,d1,queues,versions ** apply,bulk,create,delete,deploy,put,rollback,upload
railway delete,deploy,down,redeploy,up,add
railway variables + --set
render ** create,delete,deploy,restart,update
supabase functions deploy,delete
supabase db push,reset ! --local --dry-run
supabase secrets set,unset
convex deploy ! --dry-run
eas build,submit,update ! --local
expo publish
surge
gh-pages
firebase-tools deploy
deployctl deploy
denodeploy deploy
modal deploy,run
gsutil rm,mb,rb,mv,acl,iam,setmeta,defacl,lifecycle
gsutil cp,rsync > gs://*
bq cp,insert,load,mk,rm,update,query
s3cmd put,del,rm,sync,mb,rb,mv,setacl
rclone copy,copyto,move,moveto,sync,bisync,rcat ! --dry-run -n
rclone delete,purge,deletefile,mkdir,rmdir ! --dry-run -n
mc cp,mirror,mv,rb,rm,mb
ansible-playbook ! -C --check --syntax-check --list-hosts --list-tasks --list-tags
ansible-pull ! --check --list-hosts
ansible ! -C --check --list-hosts
salt,salt-ssh,pssh,pdsh,clush,dsh,mussh,mina,cap,fab,bolt,pyinfra
parallel-ssh,parallel-scp,parallel-rsync,parallel-nuke,pscp,prsync,pnuke,pdcp
knife ** bootstrap,create,delete,edit,from,ssh,upload
nixops deploy,destroy
colmena apply
nixos-rebuild + --target-host
nix copy + --to
packer build
"""

CLOUD_ROWS = """
aws s3 mb,mv,rb,rm ! --dryrun
aws s3 cp,sync > s3://* ! --dryrun
aws * accept-*,add-*,apply-*,assign-*,associate-*,attach-* ! --dry-run
aws * authorize-*,cancel-*,complete-*,copy-*,create-*,delete-* ! --dry-run
aws * deploy,deploy-*,deregister-*,detach-*,disable-* ! --dry-run
aws * disassociate-*,enable-*,execute-*,import-*,invoke,invoke-* ! --dry-run
aws * modify-*,publish,publish-*,purge-*,put-*,reboot-* ! --dry-run
aws * register-*,release-*,remove-*,replace-*,request-*,reset-* ! --dry-run
aws * restore-*,revoke-*,run-*,send-*,set-*,start-*,stop-*,submit-*,tag-*,terminate-*,transact-*,untag-* ! --dry-run
aws * update-*,upload-*,send,push,update,execute-command,write-* ! --dry-run
gcloud ** add~,apply,call,cancel,create~,delete~,deploy,detach~,disable~,drain,enable~,execute,export,import,insert
gcloud ** migrate,move,patch,promote~,publish,purge,push,remove~,replace~,reset~,resize,restart,restore,resume,rollback
gcloud ** rollout,rotate,scp,set-*,ssh,start~,stop~,submit,suspend,switchover,undelete,update~,upgrade,upload,write
not gcloud config,auth,components,init,topic,info
az ** add,apply,approve,assign,attach,cancel,clear,create,deallocate,delete~,deploy,detach,disable,enable,execute,grant
az ** import,invoke,merge,move,post,publish,purge,push,reboot,regenerate,reimage,remove,renew,reset,resize,restart
az ** restore,revoke,run,run-command,scale,set~,start,stop,swap,sync,terminate,undelete,unlock,up,update,upgrade,upload~
not az account,config,cloud,extension,login,logout
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** add~,apply,assign
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** attach~,create~,delete~,deploy
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** destroy,detach~,disable~
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** enable~,put,reboot,rebuild
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** remove~,reset~,resize,restart,rm,rotate~,set~
doctl,hcloud,linode-cli,scw,exo,oci,ibmcloud,civo,vultr-cli,openstack ** shutdown,start,stop,terminate,unset,update~
"""

MESSAGE_ROWS = """
mail,mailx,s-nail,sendmail,msmtp,ssmtp,mutt,neomutt,swaks,nullmailer-inject,sendemail,smtp-cli
slackcat,telegram-send,apprise,twurl
ntfy pub,publish,send
toot post,reply
signal-cli ** send
"""

REMOTE_ROWS = VERSION_CONTROL_ROWS + FORGE_ROWS + PACKAGE_ROWS + DEPLOYMENT_ROWS + CLOUD_ROWS + MESSAGE_ROWS

PROGRAM_ALIASES = {
    "buildah": "docker",
    "flyctl": "fly",
    "gradlew": "gradle",
    "k": "kubectl",
    "kubecolor": "kubectl",
    "mvnd": "mvn",
    "mvnw": "mvn",
    "nerdctl": "docker",
    "ntl": "netlify",
    "oc": "kubectl",
    "podman": "docker",
    "sls": "serverless",
    "terragrunt": "terraform",
    "tofu": "terraform",
}
"""Program -> the program whose rows it shares."""

PACKAGE_RUNNERS = """
bundle exec;bun x;bunx;conda run;dlx;hatch run;mise exec;mise x;npm exec;npm x;npx;op run;pdm run;pipenv run;pipx run
pnpm;pnpm dlx;pnpm exec;poetry run;rye run;uv run;uv tool run;uvx;yarn;yarn dlx;yarn exec
"""
"""Runners: they run the program named by the next word, from a package or the project's environment.

These are words only, separated by `;` or the end of a line.
"""
